"""HTTP itself: the protocol, limits, problems, authentication."""
