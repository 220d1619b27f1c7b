"""Finished reconciliations over REST, and what follows from their findings."""
