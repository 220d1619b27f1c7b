"""HTTP: the protocol, limits, problems, authentication."""
