"""Finds the items of a large batch in short steps, before anything of it is decoded.

Only texts, brackets and commas are looked at. Whoever decodes the items and what is around them
finds every other fault, because they are the whole body but for the commas between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from api.http.json_body import decode
from api.http.problems import Problem, invalid
from api.ingest.schemas import BATCH_ITEMS_MAX

STEP_BYTES: Final = 4096
STEP_PARTS: Final = 500
"""They cost more than bytes: a step of so many takes a quarter of a millisecond."""
ITEM_PARTS_MAX: Final = 400
"""Most texts, brackets and commas of an item; the largest valid one has about 270."""
PARTS_MAX: Final = BATCH_ITEMS_MAX * ITEM_PARTS_MAX
AROUND_MAX_BYTES: Final = 4096
"""Longest text around the items."""
ITEMS_DEPTH: Final = 2

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[\[\]{},]', re.DOTALL)
_REST_OF_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_OPENING: Final = frozenset(b"[{")
_LIST: Final = ord("[")
_COMMA: Final = ord(",")


class _Around(msgspec.Struct, forbid_unknown_fields=True):
    """A batch without its items."""

    items: list[Any]


_AROUND: Final = msgspec.json.Decoder(_Around)


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """Where an item is in a body, and how many texts, brackets and commas it has."""

    start: int
    end: int
    parts: int


class BatchScan:
    """One pass over the body of a batch; ``step`` until it returns False, then ``items``."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0
        self._in_text = False
        self._depth = 0
        self._first: int | None = None
        self._last: int | None = None
        self._start = 0
        self._parts = 0
        self._all_parts = 0
        self._found: list[ItemPlace] = []

    def step(self) -> bool:
        """Scan some more; return False at the end.

        Raises Problem ``batch-too-large`` or ``payload-too-large`` as soon as there is too much.
        """
        end = min(self._at + STEP_BYTES, len(self._body))
        if self._in_text:
            self._finish_text(end)
        if not self._in_text:
            self._scan(end)
        if self._all_parts + self._parts > PARTS_MAX:
            detail = f"more than {PARTS_MAX} members and elements"
            raise Problem(slug="payload-too-large", detail=detail)
        stopped = not self._in_text and self._at < end
        return stopped or end < len(self._body)

    def items(self) -> list[ItemPlace]:
        """Return the places of the items; raises Problem for what is wrong around them."""
        first, last = self._first or 0, self._last or 0
        if self._in_text or first > last:
            raise Problem(slug="malformed-json")
        around = self._body[:first] + self._body[last:]
        if len(around) > AROUND_MAX_BYTES:
            raise invalid("", "takes one member, items, and nothing else")
        decode(around, _AROUND)
        if len(self._found) == 1 and self._is_empty(self._found[0]):
            raise invalid("/items", "must hold at least one item")
        return self._found

    def _finish_text(self, end: int) -> None:
        found = _REST_OF_TEXT.match(self._body, self._at, end)
        assert found is not None  # it matches the empty text as well
        self._at = found.end()
        self._in_text = not found[1]

    def _scan(self, end: int) -> None:
        left = STEP_PARTS
        for token in islice(_TOKEN.finditer(self._body, self._at, end), STEP_PARTS):
            left -= 1
            self._parts += 1
            self._at = token.end()
            if token.lastindex is None:
                self._bracket_or_comma(token.start())
            elif not token[1]:
                self._in_text = True
                return
        if left:
            self._at = end

    def _bracket_or_comma(self, place: int) -> None:
        byte = self._body[place]
        if byte in _OPENING:
            self._depth += 1
            if self._first is None and byte == _LIST and self._depth == ITEMS_DEPTH:
                self._first = self._start = place + 1
                self._parts = 0
            return
        if self._depth == ITEMS_DEPTH and self._first is not None and self._last is None:
            self._end_item(place, is_last=byte != _COMMA)
        if byte != _COMMA:
            self._depth -= 1

    def _end_item(self, place: int, *, is_last: bool) -> None:
        self._found.append(ItemPlace(self._start, place, self._parts))
        if len(self._found) > BATCH_ITEMS_MAX:
            raise Problem(slug="batch-too-large")
        self._all_parts += self._parts
        self._start, self._parts = place + 1, 0
        if is_last:
            self._last = place

    def _is_empty(self, place: ItemPlace) -> bool:
        only_space = place.end - place.start <= AROUND_MAX_BYTES
        return only_space and not self._body[place.start : place.end].strip()
