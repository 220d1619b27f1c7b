"""The hot path: prepare and end."""
