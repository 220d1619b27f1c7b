"""The rates of PostgreSQL and Kafka alone, as references for the results."""
