"""Proxies between the parts of a run, in one process of their own; they know the frames they carry.

A link listens for a server and relays to it: bytes with the faults of a network, and for Kafka and
PostgreSQL whole frames, each of which may be held, repeated, reordered or lose its answer.
"""
