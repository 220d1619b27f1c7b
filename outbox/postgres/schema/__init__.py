"""Codes and rows that several folders read."""
