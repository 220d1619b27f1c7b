"""What the relay publishes, in which order, and in which mode."""
