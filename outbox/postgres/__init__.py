"""The PostgreSQL adapter: one module per port, with its SQL file beside it."""
