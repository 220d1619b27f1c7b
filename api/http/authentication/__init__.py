"""Who calls: API keys, or nobody in particular on loopback."""
