"""The items of a batch: counted in one pass that stops at the limit, then decoded.

So a batch with too many items costs nothing, and the rate is spent before an item is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from api.http.json_body import REFUSALS, Search, quotes, reason, refuse_malformed, tolerant, typed
from api.http.problems import Problem, invalid
from api.ingest.schemas import BATCH_ITEMS_MAX

T = TypeVar("T")

_Slices: Final = msgspec.defstruct(
    "_Slices",
    [(f"item{place}", Raw | UnsetType, UNSET) for place in range(BATCH_ITEMS_MAX)],
    array_like=True,
    forbid_unknown_fields=True,
    gc=False,
)
"""An array whose decoding stops at the first item above the limit."""
_Envelope: Final = msgspec.defstruct(
    "_Envelope", [("items", _Slices)], forbid_unknown_fields=True, gc=False
)
_ENVELOPE: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(_Envelope)


def slices_of(body: bytes) -> Sequence[bytes]:
    """Return the texts of a batch's items, which are not judged yet.

    Raises Problem: ``batch-too-large`` as soon as there is one item too many, or what is wrong with
    the envelope.
    """
    try:
        envelope, plain = tolerant(body, _ENVELOPE)
    except REFUSALS as error:
        if "of at most length" in str(error):
            raise Problem(slug="batch-too-large") from None
        refuse_malformed(body)
        raise reason(body, error, Search()) from None
    found = [bytes(each) for each in msgspec.structs.astuple(envelope.items) if each is not UNSET]
    if not found:
        raise invalid("/items", "must hold at least one item")
    return found if plain is body else _same_places(body, plain, found)


def refuse_envelope(body: bytes, slices: Sequence[bytes]) -> None:
    """Raise Problem if the whole batch is malformed or ambiguous, not an item of it."""
    refuse_malformed(body)
    if quotes(body) - sum(map(quotes, slices)) != 2:  # those of the name
        raise invalid("/items", "must be present once")


def item_of(text: bytes, single: msgspec.json.Decoder[T], search: Search) -> T | Problem:
    """Decode one item of a batch whose envelope is good."""
    try:
        return typed(text, single)
    except REFUSALS as error:
        return reason(text, error, search)


def _same_places(body: bytes, plain: bytes, found: Sequence[bytes]) -> list[bytes]:
    """Return what the body has where ``plain`` has the texts found in it, in order."""
    slices, end = [], 0
    for text in found:
        start = plain.index(text, end)  # between two items are only commas and spaces
        end = start + len(text)
        slices.append(body[start:end])
    return slices
