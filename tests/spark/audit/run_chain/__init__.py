"""A run goes on where the last one ended: what is carried, closed, or read again."""
