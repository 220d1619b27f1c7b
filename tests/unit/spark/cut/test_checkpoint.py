"""A run continues the last cut only while both stores do; everything else is read again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import StoredCheckpoint
from outbox.reconciliation.snapshot import SnapshotIdentity
from spark.cut import checkpoint
from spark.cut.checkpoint import Mark, PlannedRead, Previous
from spark.cut.cut_plan import LogCut, Plan, Range, ShardCut
from spark.cut.log_state import LogState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POINTS, MANIFESTS = Partition("points", 0), Partition("outbox.progress", 3)


def log(data: tuple[int, int] = (0, 90), manifests: tuple[int, int] = (0, 40)) -> LogCut:
    """Return a cut of one partition of each kind: where it begins and ends."""
    return LogCut(
        progress_topic=MANIFESTS.topic,
        manifests=(Range(partition=MANIFESTS, start=manifests[0], end=manifests[1]),),
        records=(Range(partition=POINTS, start=data[0], end=data[1]),),
    )


def snapshot(visible: str = "760:770:") -> SnapshotIdentity:
    return SnapshotIdentity(exported_id="1", visible=visible, taken_at=NOON)


def row(**fields: Any) -> dict[str, Any]:
    """Return what is read of a shard's manifests: the known one alone."""
    known = {"shard": 3, "batch_no": 7, "to_xid": 500, "to_n": 2, "offset": 38, "crc": 99}
    return {**known, "anchor_crc": 99, "lowest": None, **fields}


def make_previous() -> Previous:
    """Return the cut of a run, as the next one reads it from the store."""
    shard = ShardCut(
        shard=3, batch_no=7, position=Position(500, 2), baseline=Position(100, 0), unlisted=True
    )
    plan = Plan(log=log(), shards=(shard,), snapshot=snapshot())
    planned = PlannedRead(plan=plan, marks=checkpoint.marks_of([row()]))
    cut = checkpoint.cut_of(
        planned, None, LogState(ends={POINTS: 90}), {3: 8}, {POINTS: 88}, too_many=False
    )
    stored = StoredCheckpoint(run_id="one", cut=cut)
    found = checkpoint.previous_of(stored)
    assert found is not None
    assert (found.shards, found.marks) == ({3: shard}, {3: Mark(38, 99)})
    assert (found.newest, found.ahead) == ({3: 8}, {POINTS: 88})
    return found


@pytest.fixture
def previous() -> Previous:
    """The cut of a run."""
    return make_previous()


def test_without_a_stored_cut_there_is_empty_to_continue() -> None:
    assert checkpoint.previous_of(None) is None
    assert checkpoint.previous_of(StoredCheckpoint(run_id="one", cut={"version": 0})) is None


def test_only_what_no_run_has_read_is_read_with_the_last_manifest_before_it(
    previous: Previous,
) -> None:
    now = log(data=(5, 120), manifests=(0, 44))
    assert checkpoint.unread_ranges(now.records, previous.ends) == (
        Range(partition=POINTS, start=90, end=120),
    )
    assert checkpoint.ranges_ahead(now.records, previous) == (
        Range(partition=POINTS, start=5, end=90),
    )
    assert checkpoint.unread_manifests(now, previous) == (
        Range(partition=MANIFESTS, start=38, end=44),
    )
    assert checkpoint.full_read_reason(previous, now, snapshot("765:790:")) is None
    assert checkpoint.broken_chain_reason(previous, now, [row(lowest=(500, 2))]) is None


@pytest.mark.parametrize(
    ("now", "visible", "reason"),
    [
        (log(data=(0, 89)), "760:770:", "points/0 ends before the last cut"),
        (log(manifests=(0, 39)), "760:770:", "the manifests of shard 3 end before the last cut"),
        (log(manifests=(41, 50)), "760:770:", "manifests of shard 3 expired before"),
        (log(), "760:769:", "PostgreSQL has gone back"),
    ],
)
def test_a_store_that_lost_its_end_is_read_again(
    previous: Previous, now: LogCut, visible: str, reason: str
) -> None:
    assert reason in (checkpoint.full_read_reason(previous, now, snapshot(visible)) or "")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([], "the last known manifest of shard 3 is gone"),
        ([row(anchor_crc=98)], "the last known manifest of shard 3 is gone"),
        ([row(lowest=(499, 9))], "the history of shard 3 has a new beginning"),
    ],
)
def test_manifests_that_do_not_continue_the_known_one_are_read_again(
    previous: Previous, found: list[dict[str, Any]], reason: str
) -> None:
    assert reason in (checkpoint.broken_chain_reason(previous, log(), found) or "")


def test_an_idle_shard_whose_manifests_have_all_expired_still_continues(
    previous: Previous,
) -> None:
    idle = log(manifests=(40, 40))
    assert checkpoint.full_read_reason(previous, idle, snapshot()) is None
    assert checkpoint.broken_chain_reason(previous, idle, []) is None
    assert checkpoint.continued_cuts((), previous) == tuple(previous.shards.values())


def test_a_shard_keeps_its_baseline_and_never_falls_below_its_last_cut(
    previous: Previous,
) -> None:
    newer = ShardCut(shard=3, batch_no=9, position=Position(600, 1), baseline=Position(500, 2))
    (found,) = checkpoint.continued_cuts((newer,), previous)
    assert (found.position, found.baseline, found.unlisted) == ((600, 1), (100, 0), True)
    older = replace(newer, batch_no=2, position=Position(9, 1))
    (kept,) = checkpoint.continued_cuts((older,), previous)
    assert (kept.batch_no, kept.position) == (7, Position(500, 2))
