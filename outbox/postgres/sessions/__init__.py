"""Connections to PostgreSQL, their settings, locks and errors, and the loader of statements."""
