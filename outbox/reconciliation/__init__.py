"""Reconciliation: runs and findings as they are stored and read. Pure."""
