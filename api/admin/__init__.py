"""Everything but the hot path: groups, keys, messages, runs."""
