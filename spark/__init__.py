"""The reconciliation: Spark compares the outbox with Kafka and reports."""
