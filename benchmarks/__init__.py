"""Benchmarks: one question per file; each prints its results with the machine and the settings.

The questions are in `audit`, `cost`, `endurance` and `speed`; each is a program of its own
(`python -m benchmarks.speed.relay`).
"""
