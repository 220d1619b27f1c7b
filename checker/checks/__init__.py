"""Sweep and check-back."""
