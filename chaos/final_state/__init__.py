"""The final state of a run: what PostgreSQL and Kafka have at its end, as JSON lines."""
