"""Removes secrets from text for people: log lines, error messages, tables.

Errors of libraries quote what they were given, and that may be a setting, a URL or a header. So
text passes here last. The secrets of the settings are known by their value, others by their form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Final

HIDDEN: Final = "(secret)"
_FORMS: Final = (
    r"\bobx[0-9a-z]*_[0-9A-Za-z_-]{16,}",
    r"\bwhsec_[0-9A-Za-z+/=_-]{16,}",
    r"(?<=://)[^\s\"'<>]*(?=@)",
    r"(?i:(?<=bearer )|(?<=basic ))[^\s\"',]+",
    r"(?i:(?<=password=)|(?<=token=)|(?<=secret=))[^\s\"'&;]+",
)
"""API keys, check secrets, the user part of URLs, credentials, and named secrets."""

Redaction = Callable[[str], str]


def redaction(secrets: Iterable[str] = ()) -> Redaction:
    """Return the function that replaces these texts, and everything with the form of a secret."""
    known = {form for secret in secrets if secret for form in (secret, json.dumps(secret)[1:-1])}
    by_value = (re.escape(each) for each in sorted(known, key=len, reverse=True))
    pattern = re.compile("|".join((*by_value, *_FORMS)))
    return lambda text: pattern.sub(HIDDEN, text)
