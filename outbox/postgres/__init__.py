"""PostgreSQL: one module a port, each beside its SQL."""
