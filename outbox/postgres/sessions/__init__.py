"""Connections to PostgreSQL and what every statement needs of them."""
