"""Retention explains a missing record only if it was published and can have expired unseen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Partition
from outbox.reconciliation.snapshot import RecordedPlace
from spark.compare.expiry import EarlierRuns, earlier_runs
from spark.cut.checkpoint import Previous
from spark.cut.cut_plan import ShardCut
from spark.cut.log_state import LogState
from spark.findings.finding_class import Cause
from tests.unit.spark.fixtures_suspects import (
    HALF,
    HERE,
    NOON,
    P_LISTED,
    causes,
    make_hold,
    make_suspect,
)

FIRST, SECOND = Partition("points", 0), Partition("points", 1)
TRIMMED = replace(HERE, starts={FIRST: 60, SECOND: 0})
HOLD = make_hold()


def listed(batch_no: int, status: str = "P") -> tuple[dict[str, Any], ...]:
    """Return the message as a batch lists it."""
    return ({**P_LISTED[0], "batch_no": batch_no, "status": status},)


def previous(**fields: Any) -> Previous:
    """Return a cut that has judged seven batches of the shard, and read up to offset 50."""
    cut = ShardCut(shard=3, batch_no=7, position=Position(9, 1))
    known: dict[str, Any] = {"log": LogState(ends={FIRST: 50, SECOND: 50}), "shards": {3: cut}}
    empty: dict[str, Any] = {"run_id": "one", "cut_at": NOON, "horizon": 1}
    return Previous(**{**empty, **known, "manifest_ends": {}, "marks": {}, **fields})


def after(**fields: Any) -> EarlierRuns:
    """Return what the run of that cut has left."""
    ends = {FIRST: 50, SECOND: 50}
    return EarlierRuns(**{"previous": previous(), "ends": ends, **fields})


@pytest.mark.parametrize(
    ("suspect", "expected"),
    [
        (make_suspect(listed=()), Cause.LOST_SKIPPED),
        (make_suspect(listed=listed(1, "K"), hold=HOLD), Cause.UNPUBLISHED_HELD),
        (
            make_suspect(listed=listed(1, "K"), hold=replace(HOLD, dropped=True)),
            "UNPUBLISHED/given_up",
        ),
        (make_suspect(listed=listed(1, "K")), Cause.LOST_SKIPPED),
    ],
)
def test_what_was_never_published_has_not_expired(suspect: Any, expected: str) -> None:
    assert causes(suspect, TRIMMED) == [expected]


def test_without_manifests_only_a_hold_shows_that_a_message_was_not_published() -> None:
    trimmed = replace(TRIMMED, unlisted_shards=frozenset({3}))
    assert causes(make_suspect(listed=()), trimmed) == []
    assert causes(make_suspect(listed=(), hold=HOLD), trimmed) == [Cause.UNPUBLISHED_HELD]
    released = replace(HOLD, released=True)
    assert causes(make_suspect(listed=listed(1, "K"), hold=released), trimmed) == []


@pytest.mark.parametrize(
    ("batch_no", "start", "place", "expected"),
    [
        (8, 50, None, ["LOST/published"]),
        (8, 51, None, []),
        (8, 51, RecordedPlace(partition=0, offset=50, batch_no=8), []),
        (8, 51, RecordedPlace(partition=0, offset=51, batch_no=8), ["LOST/published"]),
        (8, 51, RecordedPlace(partition=1, offset=0, batch_no=8), ["LOST/published"]),
        (7, 50, None, []),
    ],
)
def test_what_was_published_since_the_last_cut_expires_only_behind_it(
    batch_no: int, start: int, place: RecordedPlace | None, expected: list[str]
) -> None:
    judgement = replace(HERE, starts={FIRST: start, SECOND: 50}, earlier=after())
    assert causes(make_suspect(listed=listed(batch_no), place=place), judgement) == expected


def test_of_a_topic_that_was_not_read_everything_is_since_the_last_cut() -> None:
    missed = after(missing=frozenset({HALF.half_id}), previous=previous(unread={"points": {3: 5}}))
    judgement = replace(HERE, starts={FIRST: 60, SECOND: 0}, earlier=missed)
    assert causes(make_suspect(listed=listed(6)), judgement) == []
    assert causes(make_suspect(listed=listed(5)), judgement) == [Cause.LOST_PUBLISHED]


def test_only_what_was_published_is_compacted() -> None:
    assert causes(make_suspect(superseded=True)) == [Cause.UNVERIFIABLE_COMPACTED]
    assert causes(make_suspect(superseded=True, listed=())) == [Cause.LOST_SKIPPED]


def test_an_accepted_topic_has_no_earlier_end() -> None:
    found = earlier_runs(previous(), (), recreated=("points",))
    assert (found.ends, earlier_runs(None, (), ())) == ({}, EarlierRuns())
