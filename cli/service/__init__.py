"""The service as the commands reach it."""
