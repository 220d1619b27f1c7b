"""The load of a run: clients and their check endpoint. SQLite stores the truth of a transaction."""
