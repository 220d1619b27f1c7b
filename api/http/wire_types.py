"""The types of single fields on the wire: texts, counts and times with their limits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from outbox.access import KEY_GROUP

NO_NUL = r"^[^\x00]*$"
"""``$`` is the very end of the text: this validator uses Rust's regular expressions."""
Word = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=NO_NUL)]
"""A name or an id of somebody else."""
ReasonText = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=NO_NUL)]
TopicText = Annotated[str, StringConstraints(min_length=1, max_length=249, pattern=NO_NUL)]
MessageId = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f-]{36}$")]
AllowedTopic = Annotated[
    str,
    StringConstraints(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]*\*?$"),
]
CheckSecret = Annotated[
    str,
    StringConstraints(
        pattern=r"^whsec_([A-Za-z0-9+/]{4}){8,20}"
        r"([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|([A-Za-z0-9+/]{4})?[A-Za-z0-9+/]{2}==)?$"
    ),
]
"""Base64 of 24 to 64 bytes, as Standard Webhooks asks."""
KeyGroup = Annotated[str, StringConstraints(pattern=rf"^{KEY_GROUP}$")]

_RFC_3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def _require_rfc_3339(value: object) -> object:
    """Refuse numbers and shortened forms, which the validator would interpret."""
    if value is not None and not (isinstance(value, str) and _RFC_3339.fullmatch(value)):
        raise ValueError("is not a time like 2026-09-21T14:13:26Z (RFC 3339)")
    return value


def _in_utc(value: datetime) -> datetime:
    """Return the time in UTC; refuse one that has no year of four digits there."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside of the years 1 to 9999 in UTC") from None


def _require_integer(value: object) -> object:
    """Accept digits in a query and an integer in a body; refuse everything else."""
    digits = isinstance(value, str) and value.isascii() and value.isdigit()
    if value is not None and not digits and type(value) is not int:
        raise ValueError("is not a whole number")
    return value


Count = Annotated[int, Field(strict=False, ge=0, le=1_000_000), BeforeValidator(_require_integer)]
HttpStatus = Annotated[int, Field(strict=False, ge=100, le=599), BeforeValidator(_require_integer)]
Moment = Annotated[
    datetime, Field(strict=False), BeforeValidator(_require_rfc_3339), AfterValidator(_in_utc)
]
