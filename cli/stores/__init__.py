"""What commands do in PostgreSQL and Kafka directly, without the API."""
