"""Real PostgreSQL and Kafka servers as child processes, without containers or system packages.

For development and tests only, on loopback: one node each, or several Kafka nodes.
"""
