"""What `outbox doctor` asks a real Kafka."""
