"""Half messages, decisions and their status in PostgreSQL."""
