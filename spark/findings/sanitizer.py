"""Text of strangers as it may be stored and shown: no control character, no half surrogate."""

from __future__ import annotations


def sanitized(text: str) -> str:
    """Return the text with all that does not print escaped; PostgreSQL, for one, stores no NUL."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
