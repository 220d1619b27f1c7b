"""What operators see and do. Pure."""
