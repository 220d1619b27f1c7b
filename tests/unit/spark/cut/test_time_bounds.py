"""The times that bound a run choose what is judged; what runs have judged before binds them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outbox.errors import ConfigurationError
from outbox.messages.manifest import START, Position
from outbox.reconciliation.log import Offsets
from outbox.reconciliation.run import StoredCheckpoint
from spark.cut.checkpoint import cut_start_of, time_bounds_of
from spark.cut.cut_capture import capture_log_cut
from spark.cut.cut_plan import LogCut, ShardCut, with_baselines
from spark.cut.time_bounds import (
    EARLIEST,
    MARGIN,
    MILLISECOND,
    TimeBounds,
    parse_time,
    record_starts,
    since_of,
)
from tests.unit.spark.cut.fixtures_noted_log import DATA, MANIFESTS, Clock, Noting

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


def chain(**cut: Any) -> StoredCheckpoint:
    """Return a chain whose newest run left no cut but this."""
    return StoredCheckpoint(run_id="first", cut={"version": 0, **cut})


def log_cut(stores: Noting, bounds: TimeBounds) -> LogCut:
    """Take the cut of the log within bounds."""
    return capture_log_cut(stores, "progress", stores.topics, Clock(), bool, bounds=bounds)


def ends(log: LogCut) -> list[int]:
    """Return where the manifests end."""
    return [each.end for each in log.manifests]


def test_a_run_up_to_a_time_ends_with_the_last_manifest_of_that_time() -> None:
    """The records are read to the end of the log all the same: what is ahead is carried."""
    stores = Noting(since={NOON + MILLISECOND: {MANIFESTS: 4}})
    log = log_cut(stores, TimeBounds(until=NOON))
    assert (ends(log), [each.end for each in log.records]) == ([4], [12])


def test_a_run_up_to_a_time_that_is_still_to_come_is_bounded_by_nothing() -> None:
    assert ends(log_cut(Noting(), TimeBounds(until=NOON))) == [10]


@pytest.mark.parametrize(("floor", "end"), [(3, 4), (7, 7), (50, 10)])
def test_no_run_ends_before_what_an_earlier_one_has_judged(floor: int, end: int) -> None:
    stores = Noting(since={NOON + MILLISECOND: {MANIFESTS: 4}})
    assert ends(log_cut(stores, TimeBounds(until=NOON, floor={0: floor}))) == [end]


def test_a_shard_that_does_not_answer_for_a_time_is_not_read() -> None:
    """So the run is not complete, rather than cut where nobody asked for it."""
    log = log_cut(Noting(silent=MANIFESTS), TimeBounds(until=NOON))
    assert [(gap.finding_class, gap.partition) for gap in log.gaps] == [("NOT_READ", MANIFESTS)]


def test_a_topic_without_a_record_since_then_is_not_read() -> None:
    log = log_cut(Noting(), TimeBounds(since=NOON))
    assert [(each.start, each.end) for each in log.records] == [(12, 12)]
    assert log.first_manifests == {}


def test_nothing_is_left_out_between_the_last_run_and_the_first_record_since_then() -> None:
    """What lies there is markers and aborted records; a run that skipped it would tell a gap."""
    stores = Noting(since={NOON - MARGIN: {DATA: 9}})
    window = TimeBounds(since=NOON)
    starts, ends = (Offsets(offsets={DATA: n}) for n in (0, 12))
    assert record_starts(stores, starts, ends, window, {DATA: 7}).offsets == {DATA: 7}
    assert record_starts(stores, starts, ends, window, {}).offsets == {DATA: 9}


def test_what_ends_before_the_bounds_has_the_standing_of_what_is_no_longer_kept() -> None:
    cuts = [ShardCut(shard=n, batch_no=9, position=Position(20, 2)) for n in (0, 1)]
    before = [each.baseline for each in with_baselines(cuts, {0: Position(8, 3)})]
    assert before == [Position(8, 3), START]


def test_runs_keep_to_the_time_that_the_first_one_was_given() -> None:
    assert time_bounds_of(None, NOON, None, full=False).since == NOON
    kept = chain(**{"from": NOON.isoformat()})
    assert time_bounds_of(kept, None, None, full=True).since == NOON
    assert time_bounds_of(chain(), None, None, full=False).since == EARLIEST


def test_where_a_run_leaves_too_much_open_its_time_is_kept() -> None:
    class Bounded:
        """As much of a plan as is asked for."""

        log = LogCut(progress_topic="", manifests=(), records=(), bounds=TimeBounds(since=NOON))

    plan: Any = Bounded
    stored = StoredCheckpoint(run_id="first", cut=cut_start_of(plan))
    assert time_bounds_of(stored, None, None, full=False).since == NOON


@pytest.mark.parametrize(
    ("asked", "full", "known"),
    [(LATER, True, NOON), (LATER, False, EARLIEST), (NOON, False, LATER)],
)
def test_a_time_that_contradicts_earlier_runs_is_refused(
    asked: datetime, full: bool, known: datetime
) -> None:
    """A later one would close nothing of what they found; an earlier one they have not read."""
    with pytest.raises(ConfigurationError, match="--from"):
        since_of(asked, full=full, known=known)


def test_a_full_run_may_begin_earlier() -> None:
    assert since_of(EARLIEST, full=True, known=NOON) == EARLIEST
    assert since_of(NOON, full=False, known=NOON) == NOON


def test_a_run_cannot_end_before_it_begins() -> None:
    with pytest.raises(ConfigurationError, match="--to"):
        time_bounds_of(None, LATER, NOON, full=False)


def test_a_run_judges_up_to_the_given_time_the_snapshot_or_the_previous_cut() -> None:
    assert TimeBounds().cut_at(LATER) == LATER
    assert TimeBounds(until=NOON).cut_at(LATER) == NOON
    assert TimeBounds(until=LATER).cut_at(NOON) == NOON
    assert TimeBounds(until=NOON, floor_at=LATER).cut_at(LATER + timedelta(hours=1)) == LATER


def test_a_time_is_read_with_its_zone() -> None:
    assert parse_time("2026-01-01T13:00:00+01:00") == NOON == parse_time("2026-01-01T12:00:00Z")
    assert parse_time("earliest") == EARLIEST
    for text in ("2026-01-01", "1969-01-01T00:00:00Z", "noon"):
        with pytest.raises(ValueError, match="expected a time since 1970 with its zone"):
            parse_time(text)
