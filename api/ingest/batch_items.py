"""The items of a batch: their number is bounded first, then each is decoded by its type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from api.http.json_body import REFUSALS, decode, refusal
from api.http.problems import Problem, invalid
from api.ingest.schemas import BATCH_ITEMS_MAX

ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")

_Texts: Final = msgspec.defstruct(
    "_Texts",
    [(f"item{place}", Raw | UnsetType, UNSET) for place in range(BATCH_ITEMS_MAX)],
    array_like=True,
    forbid_unknown_fields=True,
    gc=False,
)
"""An array whose decoding stops at the first item above the limit."""
_Envelope: Final = msgspec.defstruct(
    "_Envelope", [("items", _Texts)], forbid_unknown_fields=True, gc=False
)
_ENVELOPE: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(_Envelope)


def texts_of(body: bytes) -> Sequence[Raw]:
    """Return the texts of a batch's items, which are not decoded yet.

    Raises Problem: ``batch-too-large`` as soon as there is one item too many, or what is wrong with
    the envelope.
    """
    try:
        envelope = _ENVELOPE.decode(body)
    except REFUSALS as error:
        if "of at most length" in str(error):
            raise Problem(slug="batch-too-large") from None
        raise refusal(error) from None
    found = [each for each in msgspec.structs.astuple(envelope.items) if each is not UNSET]
    if not found:
        raise invalid("/items", "must hold at least one item")
    return found


def items_of(
    texts: Sequence[Raw], decoder: msgspec.json.Decoder[ItemT], max_bytes: int
) -> list[ItemT | Problem]:
    """Decode each item; one that is refused or too large leaves the others alone."""

    def item(text: Raw) -> ItemT:
        if len(memoryview(text)) > max_bytes:
            detail = f"an item may have at most {max_bytes} bytes"
            raise Problem(slug="payload-too-large", detail=detail)
        return decode(text, decoder)

    if sum([len(memoryview(text)) for text in texts]) <= max_bytes:
        with suppress(*REFUSALS):
            return list(map(decoder.decode, texts))
    return each_valid(texts, item)


def each_valid(
    items: Sequence[ItemT | Problem], make: Callable[[ItemT], MadeT]
) -> list[MadeT | Problem]:
    """Return what is made of each item; a problem, before or now, stays in the item's place."""
    made: list[MadeT | Problem] = []
    for item in items:
        try:
            made.append(item if isinstance(item, Problem) else make(item))
        except Problem as problem:
            made.append(problem)
    return made
