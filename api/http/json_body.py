"""Reads JSON strictly: one document, UTF-8, no NaN, at most 16 levels, no repeated member name.

The fast path is one typed decode. Of two equal names msgspec silently keeps the last, so the
decoded value is encoded again and the string quotes of both texts are counted: a repeated member
always adds at least the two quotes of its name. Only a body that fails there is parsed a second
time, slowly, to find the broken rule and its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from api.http.problems import Problem, invalid

T = TypeVar("T")

MAX_DEPTH: Final = 16
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}(?![\s\S])")
_AT: Final = " - at `"


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a body into its type.

    Raises Problem: ``malformed-json``, or ``invalid-request`` with a pointer.
    """
    try:
        value = decoder.decode(body)
        unambiguous = _quotes(body) == _quotes(msgspec.json.encode(value))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        explain(body, error)
    if not unambiguous:
        explain(body, None)
    return value


def parse(body: bytes) -> Any:
    """Parse a body of any shape; raises Problem as ``decode`` does."""
    value = _read_slowly(body)
    _refuse_ambiguous(value, "")
    return _plain(value)


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path, up to the first name that is not plain text."""
    pointer = ""
    for step in path:
        longer = _pointer(pointer, str(step))
        if longer == pointer:
            break
        pointer = longer
    return pointer


def explain(body: bytes, error: Exception | None) -> NoReturn:
    """Raise the Problem of a body that a typed decode refused."""
    document = parse(body)
    if isinstance(error, msgspec.ValidationError):
        raise _wrong_type(error, document) from None
    raise Problem(slug="invalid-request", detail="the body breaks a rule of its schema")


def items_of(body: bytes, decoder: msgspec.json.Decoder[T]) -> Sequence[T | Problem]:
    """Decode the items of a batch one by one, after the typed decode of the whole failed.

    Raises Problem when the envelope itself is wrong.
    """
    members = _read_slowly(body)
    if not isinstance(members, _Members):
        raise invalid("", "must be an object")
    for name, _ in members:
        if name != "items":
            raise invalid(_pointer("", name), "unknown member")
    if len(members) != 1:
        raise invalid("/items", "must be present once")
    if isinstance(members[0][1], _Members) or not isinstance(members[0][1], list):
        raise invalid("/items", "must be an array")
    items: list[T | Problem] = []
    for item in members[0][1]:
        one = _item(item, decoder)
        items.append(one)
    return items


class _Members(list[tuple[str, Any]]):
    """The members of one object, repeated names included."""


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("not a JSON number")


_SLOW: Final = json.JSONDecoder(object_pairs_hook=_Members, parse_constant=_refuse_constant)


def _item(item: Any, decoder: msgspec.json.Decoder[T]) -> T | Problem:
    """Decode one slowly parsed item into its type."""
    plain = None
    try:
        _refuse_ambiguous(item, "")
        plain = _plain(item)
        return decoder.decode(json.dumps(plain))
    except Problem as problem:
        return problem
    except msgspec.ValidationError as error:
        return _wrong_type(error, plain)
    except msgspec.DecodeError:
        return invalid("", "has a number out of range")


def _read_slowly(body: bytes) -> Any:
    """Parse any document, members as pairs; raises Problem for bad syntax or too many levels."""
    try:
        value = _SLOW.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Problem(slug="malformed-json") from None
    if _too_deep(body):
        raise Problem(slug="malformed-json", detail=f"deeper than {MAX_DEPTH} levels")
    return value


def _quotes(text: bytes) -> int:
    """Count the quotes that open and close strings, leaving escaped ones out."""
    if b"\\" not in text:
        return text.count(b'"')
    text = text.replace(b"\\\\", b"")
    return text.count(b'"') - text.count(b'\\"')


def _too_deep(body: bytes) -> bool:
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
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


def _plain(value: Any) -> Any:
    if isinstance(value, _Members):
        return {name: _plain(inner) for name, inner in value}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _wrong_type(error: msgspec.ValidationError, document: Any) -> Problem:
    """Turn msgspec's message (``… - at `$.a[0]` ``) into a pointer and our message."""
    what, _, path = str(error).partition(_AT)
    pointer, inner = "", document
    for name, place in _STEP.findall(path):
        if place == "...":
            return _wrong_member(pointer, inner)
        pointer += f"/{name or place}"
        inner = inner[name] if name else inner[int(place)]
    if what.startswith("Invalid enum value"):
        return invalid(pointer, "is not one of the allowed values")
    if "matching regex" in what:
        return invalid(pointer, "has characters or a form that is not allowed")
    if what.startswith("Object contains unknown field"):
        return invalid(_pointer(pointer, what.split("`")[1]), "unknown member")
    if what.startswith("Object missing required field"):
        return invalid(_pointer(pointer, what.split("`")[1]), "is required")
    return invalid(pointer, what[:1].lower() + what[1:])


def _wrong_member(pointer: str, members: Any) -> Problem:
    """Point at the first member that is not a string, in an object of strings."""
    for name, value in members.items():
        if not isinstance(value, str):
            return invalid(_pointer(pointer, name), "expected `str`")
    return invalid(pointer, "has an invalid member")


def _pointer(parent: str, name: str) -> str:
    """Return a member's pointer; a name that is not plain text is never returned to the caller."""
    return f"{parent}/{name}" if _SAFE_NAME.match(name) else parent
