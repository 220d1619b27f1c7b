"""Cursors: where a page ended, as text that callers carry but never build."""

from __future__ import annotations

import base64
import binascii
from zlib import crc32

from api.http.problems import Problem


def seal(place: str) -> str:
    """Return the cursor of a place."""
    text = f"{crc32(place.encode()):08x}{place}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def unseal(cursor: str) -> str:
    """Return the place of a cursor; raises Problem ``cursor-invalid`` for one we did not make."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Problem(slug="cursor-invalid") from None
    checksum, place = text[:8], text[8:]
    if checksum != f"{crc32(place.encode()):08x}":
        raise Problem(slug="cursor-invalid")
    return place


def unseal_number(cursor: str | None) -> int | None:
    """Return the number that a cursor names; None stays None."""
    if cursor is None:
        return None
    place = unseal(cursor)
    if not (place.isascii() and place.isdigit() and len(place) <= 19):
        raise Problem(slug="cursor-invalid")
    return int(place)
