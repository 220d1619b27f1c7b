"""`outbox message`: half messages and their records."""
