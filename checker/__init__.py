"""The daemon: sweep, check-back and relay."""
