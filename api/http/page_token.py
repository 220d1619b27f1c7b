"""The cursors of lists: the end of a page as text that callers return but never build."""

from __future__ import annotations

import base64
import binascii
from typing import Final
from zlib import crc32

from api.http.problems import Problem

LARGEST: Final = (1 << 63) - 1
"""The database compares larger numbers without its indexes."""


def encode_page_token(place: str) -> str:
    """Return the cursor of a place in a list."""
    text = f"{crc32(place.encode()):08x}{place}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_page_token(cursor: str) -> str:
    """Return the place of a cursor; raises Problem ``cursor-invalid`` if we did not issue it."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Problem(slug="cursor-invalid") from None
    checksum, place = text[:8], text[8:]
    if checksum != f"{crc32(place.encode()):08x}" or "\x00" in place:
        raise Problem(slug="cursor-invalid")
    return place


def decode_number_token(cursor: str | None) -> int | None:
    """Return the number in a cursor; None stays None."""
    if cursor is None:
        return None
    place = decode_page_token(cursor)
    if not (place.isascii() and place.isdigit()) or int(place) > LARGEST:
        raise Problem(slug="cursor-invalid")
    return int(place)
