"""Reads JSON strictly: one document, UTF-8, no NaN, at most 16 levels, no repeated member name.

The fast path is one typed decode. Of two equal names msgspec silently keeps the last, so the
decoded value is encoded again and the string quotes of both texts are counted: a repeated member
always adds at least the two quotes of its name. A body that fails is judged by few passes in C, so
a hostile one takes no longer than a good one; only a small one is parsed in Python, to find the
place of a repeated name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from api.http.problems import Problem, invalid

T = TypeVar("T")

MAX_DEPTH: Final = 16
PARTS_MAX: Final = 20_000
"""Most members and elements of a body without a type: twice what the longest list may have."""
MEMBERS_MAX: Final = 100
"""Most members of one object of such a body; its schema would refuse each of them by itself."""
SEARCHED_MAX: Final = 2000
"""Most members and elements that one request may have searched for a repeated name, in Python."""
DEPTH_MAX_PARTS: Final = 50_000
"""A body with more brackets, quotes and escapes is not measured: its schema refuses it as well."""
SURROGATES_MAX: Final = 100_000
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_SPACE: Final = rb"\\u0020"
"""As long as what it replaces, so that places stay the same."""
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}(?![\s\S])")
_AT: Final = " - at `"
_UNCLEAR: Final = "a member is present twice, or a text has an unpaired surrogate"

_RAW: Final = msgspec.json.Decoder(Raw)
_ANY: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()


class Search:
    """What one request may still have searched in Python."""

    def __init__(self) -> None:
        self._left = SEARCHED_MAX

    def allows(self, body: bytes) -> bool:
        """Take the parts of a body from what is left; False if there are too many."""
        self._left -= _parts(body)
        return self._left >= 0


class Ambiguous(ValueError):
    """A body that two readers could understand differently."""


REFUSALS: Final = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    RecursionError,
    OverflowError,
    Ambiguous,
)
"""What ``typed`` raises."""


def typed(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a body into its type; raises one of REFUSALS."""
    value = decoder.decode(body)
    if quotes(body) != quotes(msgspec.json.encode(value)):
        raise Ambiguous
    return value


async def typed_in_steps(
    body: bytes, decoder: msgspec.json.Decoder[T], rest: Callable[[], Awaitable[None]]
) -> T:
    """Decode a large body as ``typed`` does; ``rest`` lets others work between its passes."""
    value = decoder.decode(body)
    await rest()
    expected = quotes(body)
    await rest()
    encoded = msgspec.json.encode(value)
    await rest()
    if expected != quotes(encoded):
        raise Ambiguous
    return value


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a body into its type.

    Raises Problem: ``malformed-json``, or ``invalid-request`` with a pointer.
    """
    try:
        return typed(body, decoder)
    except REFUSALS as error:
        raise refusal(body, error) from None


def refusal(body: bytes, error: Exception) -> Problem:
    """Return why ``typed`` refused a body. Raises Problem ``malformed-json``."""
    refuse_malformed(body)
    return reason(body, error, Search())


def parse(body: bytes) -> Any:
    """Parse a body of any shape; raises Problem as ``decode`` does, and ``payload-too-large``."""
    if _parts(body) > PARTS_MAX:
        raise Problem(slug="payload-too-large", detail=f"more than {PARTS_MAX} members")
    value = decode(body, _ANY)
    if _too_deep(body):
        raise _deep()
    if _most_members(value) > MEMBERS_MAX:
        detail = f"an object with more than {MEMBERS_MAX} members"
        raise Problem(slug="payload-too-large", detail=detail)
    return value


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path, up to the first name that is not plain text."""
    pointer = ""
    for step in path:
        longer = _pointer(pointer, str(step))
        if longer == pointer:
            break
        pointer = longer
    return pointer


def reason(body: bytes, error: Exception, search: Search) -> Problem:
    """Return why ``typed`` refused a body that is not malformed."""
    if isinstance(error, msgspec.ValidationError):
        return _wrong_type(error, body, search)
    return _ambiguity(body, search)


class _Members(list[tuple[str, Any]]):
    """The members of one object, repeated names included."""


_SLOW: Final = json.JSONDecoder(object_pairs_hook=_Members)


def refuse_malformed(body: bytes) -> None:
    """Raise Problem ``malformed-json`` for bad syntax or too many levels."""
    try:
        body.decode("utf-8")
        tolerant(body, _RAW)
    except REFUSALS:
        raise Problem(slug="malformed-json") from None
    if _too_deep(body):
        raise _deep()


def tolerant(body: bytes, decoder: msgspec.json.Decoder[Any]) -> tuple[Any, bytes]:
    """Decode without judging texts: msgspec refuses unpaired surrogates even where it skips.

    Returns also what was decoded, which is the body or, of the same length, a tolerable one.
    """
    try:
        return decoder.decode(body), body
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if not _surrogates(body):
            raise
        plain = _SURROGATE.sub(_SPACE, body)
        return decoder.decode(plain), plain


def _surrogates(body: bytes) -> bool:
    """Return True if a body escapes surrogates, and not so many that nobody means them."""
    return 0 < body.count(b"\\ud") + body.count(b"\\uD") <= SURROGATES_MAX


def _deep() -> Problem:
    return Problem(slug="malformed-json", detail=f"deeper than {MAX_DEPTH} levels")


def _ambiguity(body: bytes, search: Search) -> Problem:
    """Return what a well-formed body has that two readers could understand differently."""
    if not search.allows(body):
        return invalid("", _UNCLEAR)
    try:
        _refuse_ambiguous(_SLOW.decode(body.decode("utf-8")), "")
    except Problem as problem:
        return problem
    except ValueError:  # a number that Python does not read
        pass
    return Problem(slug="invalid-request", detail="the body breaks a rule of its schema")


def _parts(body: bytes) -> int:
    """Return about how many members and elements a body has; texts may add to them."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _most_members(value: Any) -> int:
    """Return how many members the largest object of a value has."""
    most, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            most = max(most, len(each))
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return most


def quotes(text: bytes) -> int:
    """Count the quotes that open and close strings, leaving escaped ones out."""
    if b"\\" not in text:
        return text.count(b'"')
    text = text.replace(b"\\\\", b"")
    return text.count(b'"') - text.count(b'\\"')


def _too_deep(body: bytes) -> bool:
    opened = body.count(b"[") + body.count(b"{")
    texts = body.count(b'"') + body.count(b"\\")
    if opened <= MAX_DEPTH or opened + texts > DEPTH_MAX_PARTS:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"0").replace(b"{}", b"0").replace(b"0", b"")
        if not brackets:
            return False
    return True


def _refuse_ambiguous(value: Any, pointer: str) -> None:
    """Raise for a repeated name or an unpaired surrogate anywhere in a slow-parsed value."""
    if isinstance(value, str):
        if not value.isascii() and _has_surrogate(value):
            raise invalid(pointer, "has an unpaired surrogate")
    elif isinstance(value, _Members):
        seen: set[str] = set()
        for name, inner in value:
            here = _pointer(pointer, name)
            if name in seen:
                raise invalid(here, "is present twice")
            seen.add(name)
            _refuse_ambiguous(name, here)
            _refuse_ambiguous(inner, here)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _refuse_ambiguous(inner, f"{pointer}/{place}")


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _wrong_type(error: msgspec.ValidationError, body: bytes, search: Search) -> Problem:
    """Turn msgspec's message (``… - at `$.a[0]` ``) into a pointer and our message."""
    what, _, path = str(error).partition(_AT)
    pointer = ""
    for name, place in _STEP.findall(path):
        if place == "...":
            return _wrong_member(pointer, body, search)
        pointer += f"/{name or place}"
    if what.startswith("Invalid enum value"):
        return invalid(pointer, "is not one of the allowed values")
    if "matching regex" in what:
        return invalid(pointer, "has characters or a form that is not allowed")
    if what.startswith("Object contains unknown field"):
        return invalid(_pointer(pointer, what.split("`")[1]), "unknown member")
    if what.startswith("Object missing required field"):
        return invalid(_pointer(pointer, what.split("`")[1]), "is required")
    return invalid(pointer, what[:1].lower() + what[1:])


def _wrong_member(pointer: str, body: bytes, search: Search) -> Problem:
    """Point at the first member that is not a string, in an object of strings."""
    unclear = invalid(pointer, "has an invalid member")
    if not search.allows(body):
        return unclear
    try:
        members: Any = _ANY.decode(body)
        for name in pointer.split("/")[1:]:
            members = members[int(name) if isinstance(members, list) else name]
    except (*REFUSALS, LookupError):
        return unclear
    for name, value in members.items():
        if not isinstance(value, str):
            return invalid(_pointer(pointer, name), "expected `str`")
    return unclear


def _pointer(parent: str, name: str) -> str:
    """Return a member's pointer; a name that is not plain text is never returned to the caller."""
    return f"{parent}/{name}" if _SAFE_NAME.match(name) else parent
