"""The transactional outbox: half messages in PostgreSQL, records in Kafka, decided once.

A producer prepares a half message (durable, invisible), runs its local transaction and ends the
message. The checker asks producers that did not end a message. The relay publishes committed
messages, exactly once. This package contains the values, the rules and the adapters for PostgreSQL
and Kafka that the programs ``api``, ``checker`` and ``spark`` share.
"""
