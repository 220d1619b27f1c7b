"""The model's PostgreSQL and Kafka."""
