"""The check queue, its settlement, the sweep and the producer groups in PostgreSQL."""
