"""Tombstones that compaction has removed, as it removes the values before them.

Some time after it has removed the older records of a key, compaction removes the tombstone too. The
log then has nothing of the key, but PostgreSQL still has the message without a value: it explains
why each earlier message of its key has no record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from outbox.messages.message_id import shard_in
from spark.compare.evidence import Suspect
from spark.compare.expiry import Place, newest_place
from spark.compare.facts import Judgement, may_be_compacted

Key = tuple[str, bytes]
"""A topic and a key in it."""
Newest = TypeVar("Newest", int, Place)

KEPT_MOST: Final = 100_000
"""Keys in memory; the tombstones of further ones explain nothing."""


@dataclass(slots=True)
class Tombstones:
    """The newest published tombstone of each key of which nothing is left in a compacted topic."""

    _offsets: dict[tuple[Key, int], int] = field(default_factory=dict)
    """By partition."""
    _listed: dict[tuple[Key, int], Place] = field(default_factory=dict)
    """By shard: its batch and its index there."""

    def note(self, suspects: Iterable[Suspect], judgement: Judgement) -> None:
        """Remember the tombstones among them."""
        for each in suspects:
            key = _key_of(each)
            if key is None or not _is_tombstone(each) or not may_be_compacted(each, judgement):
                continue
            if (listed := newest_place(each)) is not None:
                _keep(self._listed, (key, shard_in(each.half_id)), listed)
            if (place := each.place) is not None:
                _keep(self._offsets, (key, place.partition), place.offset)

    def explain(self, suspect: Suspect) -> bool:
        """Whether a tombstone that is gone came after this message of its key."""
        key = _key_of(suspect)
        if key is None:
            return False
        place, listed = suspect.place, newest_place(suspect)
        if place is not None and (offset := self._offsets.get((key, place.partition))) is not None:
            return offset > place.offset
        newest = self._listed.get((key, shard_in(suspect.half_id)))
        return listed is not None and newest is not None and newest > listed


def _keep(newest: dict[tuple[Key, int], Newest], of: tuple[Key, int], found: Newest) -> None:
    """Keep the newer one, of as many keys as there is room for."""
    if of in newest or len(newest) < KEPT_MOST:
        newest[of] = max(found, newest.get(of, found))


def _is_tombstone(suspect: Suspect) -> bool:
    return suspect.known is not None and suspect.known.half.message.value is None


def _key_of(suspect: Suspect) -> Key | None:
    message = suspect.known.half.message if suspect.known else None
    return (message.topic, message.key or b"") if message else None
