"""`make demo`: the main use case on real servers, act by act, and verified at the end."""
