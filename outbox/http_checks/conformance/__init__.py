"""Tries whether a check endpoint does what the contract asks: valid, stale, forged checks."""
