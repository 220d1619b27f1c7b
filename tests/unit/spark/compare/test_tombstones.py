"""A tombstone that compaction has removed explains the messages of its key before it."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.messages.message_id import HalfId
from spark.compare.evidence import Suspect
from spark.compare.tombstones import Tombstones
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_suspects import COMMITTED, HALF, HERE, make_suspect, placed_at

COMPACTED = replace(HERE, compacted_topics=frozenset({"points"}))


def of_key(key: bytes, value: bytes | None, **fields: Any) -> Suspect:
    """Return a suspect without a record, whose key and value are these."""
    half = replace(HALF, message=replace(HALF.message, key=key, value=value))
    return make_suspect(known=replace(COMMITTED, half=half), **fields)


def listed(batch_no: int, index: int = 0) -> dict[str, Any]:
    """Return the place in a batch that published the message."""
    return {"listed": ({"status": "P", "batch_no": batch_no, "index": index},)}


def explains(tombstone: Suspect, suspect: Suspect) -> bool:
    """Return whether this tombstone explains that message."""
    tombstones = Tombstones()
    tombstones.note([tombstone], COMPACTED)
    return tombstones.explain(suspect)


@pytest.mark.parametrize(("offset", "expected"), [(6, True), (5, False), (4, False)])
def test_a_tombstone_explains_what_was_before_it_in_its_partition(
    offset: int, expected: bool
) -> None:
    tombstone = of_key(b"a", None, place=placed_at(offset), **listed(9))
    assert explains(tombstone, of_key(b"a", b"v", place=placed_at(5))) is expected


@pytest.mark.parametrize(("batch_no", "expected"), [(3, True), (2, False), (1, False)])
def test_without_recorded_places_the_batches_show_the_order(batch_no: int, expected: bool) -> None:
    assert explains(of_key(b"a", None, **listed(batch_no)), of_key(b"a", b"v", **listed(2))) is (
        expected
    )


def test_it_explains_no_other_key_and_a_value_explains_nothing() -> None:
    assert not explains(of_key(b"b", None, **listed(3)), of_key(b"a", b"v", **listed(2)))
    assert not explains(of_key(b"a", b"w", **listed(3)), of_key(b"a", b"v", **listed(2)))


def test_a_tombstone_of_a_topic_that_is_not_compacted_explains_nothing() -> None:
    tombstones = Tombstones()
    tombstones.note([of_key(b"a", None, **listed(3))], HERE)
    assert not tombstones.explain(of_key(b"a", b"v", **listed(2)))


def test_of_several_tombstones_of_a_key_the_last_one_counts() -> None:
    tombstones = Tombstones()
    tombstones.note([of_key(b"a", None, **listed(n)) for n in (3, 7, 5)], COMPACTED)
    assert tombstones.explain(of_key(b"a", b"v", **listed(6)))
    assert not tombstones.explain(of_key(b"a", b"v", **listed(8)))


def test_a_message_that_postgresql_no_longer_has_is_not_explained() -> None:
    assert not Tombstones().explain(make_suspect(known=None, half_id=HalfId(5)))
