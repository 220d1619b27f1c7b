"""`outbox dev`: PostgreSQL, Kafka, the API and the checker, real and in one process tree."""
