"""Proxies between the parts of a run, in a separate process; they parse the frames they carry.

A link listens in place of a server and relays to it: bytes with network faults, and for Kafka and
PostgreSQL whole frames. A frame can be held, repeated, reordered or lose its answer.
"""
