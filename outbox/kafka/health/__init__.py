"""What `outbox doctor` asks Kafka: durability of topics, open transactions."""
