"""`outbox doctor`: checks everything that the guarantees depend on."""
