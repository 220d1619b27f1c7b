"""The commit log and the held records in PostgreSQL."""
