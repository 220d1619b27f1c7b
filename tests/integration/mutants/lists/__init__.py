"""Mutants of the product, one list a room of it."""
