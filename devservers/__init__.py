"""A real PostgreSQL and a real Kafka as our own child processes: no containers, no system packages.

For development and tests only, on loopback: one node each, and several Kafka nodes where a test
wants them.
"""
