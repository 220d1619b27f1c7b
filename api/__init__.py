"""The REST face: prepare, end, look up, and the producer groups."""
