"""Partitions, retention and copies."""
