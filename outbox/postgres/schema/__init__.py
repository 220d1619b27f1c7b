"""The tables, as SQLAlchemy describes them."""
