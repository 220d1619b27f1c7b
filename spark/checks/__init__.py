"""Further checks: order, keys, latency, retention and others."""
