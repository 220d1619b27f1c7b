"""Variants that are wrong in one rule each: a harness that lets one pass proves nothing."""
