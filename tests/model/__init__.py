"""An exhaustive search over the relay's own protocol in a model of PostgreSQL and Kafka."""
