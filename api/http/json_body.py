"""Reads JSON into a type: one document in UTF-8. Of two equal members the last one counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from api.http.problems import Problem, invalid
from outbox.messages.message import Resolution

T = TypeVar("T")

PARTS_MAX: Final = 20_000
"""Most members and elements of a body without a type: twice what the longest list may have."""
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}(?![\s\S])")
_AT: Final = " - at `"
PLAIN: Final = {
    "Invalid enum value.*": f"must be {', '.join(Resolution)}",
    "Expected": "must be",
    ", got": ", not",
    "`str[^`]*`": "text",
    "`(int|float)[^`]*`": "a number",
    "`bool`": "true or false",
    "`object[^`]*`": "an object",
    "`array[^`]*`": "a list",
    "`null`": "null",
    " of length": " with a length",
    "<=": "of at most",
    ">=": "of at least",
    "that's a multiple.*": "without a fraction",
}
"""The decoder's words, which name types of Python, and what a caller reads in their place."""
UNKNOWN_NAME: Final = "has an unknown name"
REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)
"""What a decoder raises."""


def _number(text: str) -> int | float:
    """Read a number with a fraction or an exponent: 60.0 is an integer (JSON Schema)."""
    number = float(text)
    return int(number) if number.is_integer() else number


_ANY: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(float_hook=_number)


def decode(body: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], at: str = "") -> T:
    """Decode a body, or its member at a JSON pointer, into its type.

    Raises Problem: ``malformed-json``, or ``invalid-request`` with a pointer.
    """
    try:
        return decoder.decode(body)
    except REFUSALS as error:
        raise refusal(error, at) from None


def parse(body: bytes) -> Any:
    """Parse a body of any shape; raises Problem as ``decode`` does, and ``payload-too-large``."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") > PARTS_MAX:
        raise Problem(
            slug="payload-too-large", detail=f"the JSON may have at most {PARTS_MAX} parts"
        )
    return decode(body, _ANY)


def refusal(error: Exception, at: str = "") -> Problem:
    """Turn a decoder's message (``… - at `$.a[0]` ``) into a problem with a pointer."""
    if not isinstance(error, msgspec.ValidationError):
        return Problem(slug="malformed-json")
    what, _, path = str(error).partition(_AT)
    pointer = at + "".join(f"/{name or place}" for name, place in _STEP.findall(path))
    if what.startswith("Object "):
        pointer = _pointer(pointer, what.split("`")[1])
        what = "is required" if "missing" in what else UNKNOWN_NAME
    for words, plain in PLAIN.items():
        what = re.sub(words, plain, what)
    if "..." in path:
        what = what.replace("must be", "must hold only")
    if pointer == "/value":
        what += ": send the serialised JSON"
    return invalid(pointer, what)


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path, up to the first name that is not plain text."""
    pointer = ""
    for step in path:
        longer = _pointer(pointer, str(step))
        if longer == pointer:
            break
        pointer = longer
    return pointer


def _pointer(parent: str, name: str) -> str:
    """Return a member's pointer; a name that is not plain text is never returned to the caller."""
    return f"{parent}/{name}" if _SAFE_NAME.match(name) else parent
