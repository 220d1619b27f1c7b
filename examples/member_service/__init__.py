"""The member service: grants points for payments it reads from Kafka, each exactly once."""
