"""The REST API: prepare, end, read messages, and manage producer groups."""
