"""Partitions, retention, heartbeats and readiness in PostgreSQL."""
