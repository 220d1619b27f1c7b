"""The metrics and traces of a whole installation."""
