"""Loads for the benchmarks: clients, producers, endpoints, backlogs."""
