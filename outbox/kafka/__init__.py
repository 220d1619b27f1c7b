"""The only door to Kafka: `confluent_kafka` is imported in this folder alone."""
