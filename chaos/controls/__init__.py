"""Relays that break one rule each: a harness that lets one of them pass proves nothing."""
