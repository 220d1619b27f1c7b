"""Which faults a run performs, and when: data and pure functions."""
