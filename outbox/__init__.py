"""The transactional outbox: half messages in PostgreSQL, records in Kafka, decided once.

A producer prepares a half message (durable, invisible), runs its local transaction and ends the
message; the checker asks producers that stayed silent; the relay publishes what was committed,
exactly once. This package holds the words, the rules and the doors to PostgreSQL and Kafka that the
programs ``api``, ``checker`` and ``spark`` share.
"""
