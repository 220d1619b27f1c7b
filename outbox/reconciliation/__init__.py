"""Reconciliation: runs, findings and the checkpoint as they are stored and read. Pure."""
