"""The wire models of the admin routes."""
