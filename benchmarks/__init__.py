"""Benchmarks: one question per file; each prints its results with the machine and the settings."""
