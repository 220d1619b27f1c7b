"""A compacted topic keeps the last record of a key; the others are not lost."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.messages.manifest import Position
from spark.compare.evidence import Suspect
from spark.compare.facts import may_be_compacted
from spark.compare.last_records import is_superseded, key_hash, older_record
from spark.cut.log_state import Baseline
from spark.findings.finding_class import FindingClass
from spark.findings.verdict import Verdict, verdict_of
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_reports import make_finding
from tests.unit.spark.fixtures_suspects import (
    COMMITTED,
    HALF,
    HERE,
    classes,
    make_copy,
    make_suspect,
    placed_at,
)

COMPACTED = replace(HERE, compacted_topics=frozenset({"points"}))


def keyed(value: bytes | None = b"v", **fields: Any) -> Suspect:
    """Return a suspect without a record, whose key and value are these."""
    half = replace(HALF, message=replace(HALF.message, key=b"member-1", value=value))
    return make_suspect(known=replace(COMMITTED, half=half), **fields)


def newest(
    offset: int,
    partition: int = 0,
    topic: str = "points",
    batch: tuple[int | None, int | None, int | None] = (3, 1, 1),
) -> list[dict[str, Any]]:
    """Return the last record of that key; its batch is shard, number and index."""
    row = {"topic": topic, "partition": partition, "offset": offset, "oldest": offset}
    named = dict(zip(("shard", "batch_no", "index"), batch, strict=True))
    return [{**row, **named, "key_hash": key_hash(keyed())}]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (newest(6), True),
        (newest(5), False),
        (newest(6, partition=1), False),
        (newest(6, topic="other"), False),
        ([{**newest(6)[0], "key_hash": 1}], False),
        ([], False),
    ],
)
def test_only_a_later_record_of_the_key_in_its_place_supersedes(
    rows: list[dict[str, Any]], expected: bool
) -> None:
    assert is_superseded(keyed(place=placed_at(5)), rows) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (newest(4), 4),
        ([*newest(4), *newest(3, batch=(None, None, None))], 3),
        (newest(5), None),
        (newest(4, partition=1), None),
        (newest(4, topic="other"), None),
        ([{**newest(4)[0], "key_hash": 1}], None),
        ([{**newest(4)[0], "oldest": None}], None),
    ],
)
def test_only_an_older_record_of_the_key_in_its_place_proves_that_none_was_removed(
    rows: list[dict[str, Any]], expected: int | None
) -> None:
    assert older_record(keyed(place=placed_at(5)), rows) == expected
    assert older_record(keyed(), rows) is None


def test_a_tombstone_goes_without_a_later_record() -> None:
    assert is_superseded(keyed(value=None, place=placed_at(5)), [])


def test_a_superseded_message_is_compacted_and_never_lost() -> None:
    gone = keyed(place=placed_at(5), superseded=True)
    assert classes(gone, COMPACTED) == [FindingClass.COMPACTED]
    assert classes(keyed(place=placed_at(5)), COMPACTED) == [FindingClass.LOST]
    assert verdict_of({make_finding(finding_class=FindingClass.COMPACTED).graded}) is Verdict.CLEAN


def test_only_messages_without_a_record_in_compacted_topics_are_looked_up() -> None:
    assert may_be_compacted(keyed(), COMPACTED)
    assert not may_be_compacted(keyed(), HERE)
    assert not may_be_compacted(make_suspect(make_copy(), make_copy()), COMPACTED)
    assert not may_be_compacted(keyed(listed=({"status": "K"},)), COMPACTED)


def test_what_was_never_published_is_neither_compacted_nor_excused_by_an_accepted_topic() -> None:
    accepted = replace(COMPACTED, baselines={"points": {3: Baseline(Position(9, 1))}})
    assert classes(keyed(superseded=True, listed=()), accepted) == [FindingClass.SKIPPED]
