"""A real PostgreSQL and a real Kafka as our own child processes: no containers, no system packages.

For development and tests only: one node each, on loopback.
"""
