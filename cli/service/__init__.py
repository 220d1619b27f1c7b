"""Clients of the running service, and its programs as processes."""
