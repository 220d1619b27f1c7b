"""The tables as SQLAlchemy describes them, and rows that several folders read."""
