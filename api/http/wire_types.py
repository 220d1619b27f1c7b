"""The types of single fields on the wire: what a text, a count or a moment must look like."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, StringConstraints

NO_NUL = r"^[^\x00]*$"
"""Here ``$`` is the very end of the text: this validator's expressions are Rust's."""
Operator = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=NO_NUL)]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=NO_NUL)]
AllowedTopic = Annotated[
    str,
    StringConstraints(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]*\*?$"),
]
KeyGroup = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,127})$")]

_RFC_3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def _written_out(value: object) -> object:
    """Refuse numbers and shortened forms, which the validator would guess at."""
    if value is not None and not (isinstance(value, str) and _RFC_3339.fullmatch(value)):
        raise ValueError("is not a moment like 2026-09-21T14:13:26Z (RFC 3339)")
    return value


def _a_count(value: object) -> object:
    """Refuse what is no count; a query's text is digits, a body's number is whole."""
    digits = isinstance(value, str) and value.isascii() and value.isdigit()
    if value is not None and not digits and type(value) is not int:
        raise ValueError("is not a whole number")
    return value


Count = Annotated[int, Field(strict=False, ge=0, le=1_000_000), BeforeValidator(_a_count)]
Moment = Annotated[datetime, Field(strict=False), BeforeValidator(_written_out)]
