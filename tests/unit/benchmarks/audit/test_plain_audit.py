"""The plain audit of benchmarks/audit/cuts.py detects each fault that it counts."""

from __future__ import annotations

from collections import Counter

from benchmarks.audit.plain_audit import Seen, compared
from outbox.messages.manifest import Position
from outbox.messages.message_id import HalfId

COMMITS = {HalfId(n): (3, Position(10, n)) for n in range(1, 5)}
ENDS = {3: Position(10, 3)}
"""The fourth message is committed and not published."""


def seen_of(*half_ids: int) -> Seen:
    """Compare the commits with a log of these records."""
    return compared(COMMITS, ENDS, Counter(HalfId(each) for each in half_ids), gaps=0)


def test_a_published_message_per_commit_is_clean_with_or_without_later_records() -> None:
    assert seen_of(1, 2, 3).clean
    assert (seen_of(1, 2, 3, 4).clean, seen_of(1, 2, 3, 4).ahead) == (True, 1)


def test_a_missing_a_doubled_and_a_foreign_record_are_counted() -> None:
    assert (seen_of(1, 2).lost, seen_of(1, 2).clean) == (1, False)
    assert (seen_of(1, 2, 3, 3).doubled, seen_of(1, 2, 3, 3).clean) == (1, False)
    assert (seen_of(1, 2, 3, 9).unexpected, seen_of(1, 2, 3, 9).clean) == (1, False)


def test_a_part_that_was_not_read_is_not_clean() -> None:
    assert not compared(COMMITS, ENDS, Counter(map(HalfId, (1, 2, 3))), gaps=1).clean
