"""PostgreSQL and Kafka of a run, their copies, and probes from outside."""
