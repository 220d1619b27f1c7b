"""Further checks: order, keys, samples, manifests, retention and others."""
