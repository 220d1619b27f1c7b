"""What operators read and change in PostgreSQL."""
