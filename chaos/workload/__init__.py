"""The clients of a run and their check endpoint: every transaction has one truth, in SQLite."""
