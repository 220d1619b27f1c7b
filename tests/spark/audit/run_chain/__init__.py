"""A run goes on where the last one ended: what is kept open, closed, or read again."""
