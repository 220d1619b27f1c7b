"""The member service: grants points for payments that it reads from Kafka, each exactly once."""
