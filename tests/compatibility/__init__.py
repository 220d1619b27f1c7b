"""Tests on other releases of PostgreSQL, Kafka, Python: ``python -m tests.compatibility``."""
