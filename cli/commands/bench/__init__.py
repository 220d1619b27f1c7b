"""`outbox bench`: a small load on a running installation, and what it took."""
