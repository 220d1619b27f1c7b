"""The relay takes a shard over: each test brings a state to a point and checks the next plan."""

from __future__ import annotations

from uuid import UUID

import pytest

from outbox.messages.manifest import HELD, PUBLISHED, START, Entry, Manifest, Position
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Cursor, HaltReason, Phase, Progress, SignsOfLife, Visible
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDENTITY,
    IDLE,
    IDS,
    PROVEN,
    after,
    manifest,
    read,
    replaying,
    same,
    standing,
    stored,
)

SILENT = SignsOfLife(START)

# -- IDLE and VERIFY -----------------------------------------------------------------------------


def test_a_relay_asks_for_the_lock_before_anything_else() -> None:
    assert after(IDLE, answers.Rested()) == (IDLE, (actions.TryLock(),))


def test_a_busy_lock_is_asked_for_again_within_a_second() -> None:
    state, plan = after(IDLE, answers.LockBusy(0.0, SILENT, False))
    assert (state.phase, plan) == (Phase.IDLE, (actions.Rest(0.5),))


def test_an_owner_with_work_and_no_progress_for_thirty_seconds_loses_its_session() -> None:
    busy = [answers.LockBusy(at, SILENT, True) for at in (0.0, 29.9)]
    state, plan = after(IDLE, *busy)
    assert plan == (actions.Rest(0.5),)
    assert after(state, answers.LockBusy(30.0, SILENT, True))[1][0] == actions.TerminateHolder()


@pytest.mark.parametrize(
    "later",
    [
        answers.LockBusy(40.0, SILENT._replace(position=Position(1, 1)), True),
        answers.LockBusy(40.0, SILENT._replace(manifest_offset=1), True),
        answers.LockBusy(40.0, SILENT._replace(gen=1), True),
        answers.LockBusy(40.0, SILENT._replace(beat=1.0), True),
        answers.LockBusy(40.0, SILENT, False),
    ],
    ids=["it moved", "it released", "it took over again", "it waits", "it has nothing to do"],
)
def test_an_owner_that_is_not_stuck_keeps_its_session(later: answers.LockBusy) -> None:
    state, _ = after(IDLE, answers.LockBusy(0.0, SILENT, True))
    assert after(state, later)[1] == (actions.Rest(0.5),)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"identity": IDENTITY._replace(cluster_id="other")}, HaltReason.CLUSTER_CHANGED),
        ({"identity": IDENTITY._replace(topic_id="other")}, HaltReason.TOPIC_CHANGED),
        ({"identity": IDENTITY._replace(pg_system_id="other")}, HaltReason.DATABASE_CHANGED),
        ({"partitions": 12}, HaltReason.TOPIC_CHANGED),
    ],
)
def test_a_changed_store_halts_before_anyone_is_fenced(
    changed: dict[str, object], reason: HaltReason
) -> None:
    state, plan = after(IDLE, answers.LockTaken(), standing(stored(), **changed))
    assert (state.phase, state.halt) == (Phase.HALT, reason)
    assert plan[0] == actions.StoreHalt(reason)
    assert actions.Fence() not in plan


def test_a_stored_halt_is_kept_until_somebody_resolves_it() -> None:
    halted = standing(stored(halt=HaltReason.PROGRESS_LOST))
    state, plan = after(IDLE, answers.LockTaken(), halted)
    assert (state.halt, plan) == (HaltReason.PROGRESS_LOST, (actions.Rest(2.0),))
    assert after(state, answers.Rested(), standing(stored()))[1] == (actions.Fence(),)


# -- FENCE and REPLAY ----------------------------------------------------------------------------


def test_the_log_is_read_only_after_the_fence() -> None:
    state, plan = after(IDLE, answers.LockTaken(), standing())
    assert plan == (actions.Fence(),)
    assert after(state, answers.Fenced())[1] == (actions.ReadBounds(),)


def test_the_first_start_begins_at_nothing() -> None:
    state, _ = after(IDLE, answers.LockTaken(), standing(), answers.Fenced())
    state, plan = after(state, answers.Bounds(None, 0, 0), PROVEN)
    begun = Cursor(START, 0, 0, 0, 1)
    assert (state.phase, state.cursor) == (Phase.RUN, begun)
    assert plan == (actions.SaveProgress(begun, IDENTITY, begins=True), actions.ReadCommits(START))


@pytest.mark.parametrize(
    ("progress", "start", "end", "reason"),
    [
        (None, 0, 4, HaltReason.CURSOR_MISSING),
        (stored(None), 0, 4, HaltReason.CURSOR_MISSING),
        (stored(), 6, 9, HaltReason.PROGRESS_LOST),
        (stored(), 0, 4, HaltReason.PROGRESS_LOST),
    ],
    ids=["no row", "only a halt was stored", "expired", "truncated"],
)
def test_a_log_that_does_not_fit_the_cursor_halts(
    progress: Progress | None, start: int, end: int, reason: HaltReason
) -> None:
    state, _ = after(IDLE, answers.LockTaken(), standing(progress), answers.Fenced())
    halted, plan = after(state, answers.Bounds(progress, start, end))
    assert (halted.halt, plan[0]) == (reason, actions.StoreHalt(reason))


def test_a_log_of_which_everything_has_expired_is_continued_at_its_end() -> None:
    state, _ = after(IDLE, answers.LockTaken(), standing(stored()), answers.Fenced())
    state, plan = after(state, answers.Bounds(stored(), 6, 6))
    assert (state.halt, state.at.manifest_offset) == (None, 6)
    assert plan == (actions.Settle(Visible(0, 6), 6, AT.position),)


def test_a_manifest_that_equals_the_commit_log_moves_the_position() -> None:
    made = manifest()
    state, plan = after(replaying(), read(made))
    assert plan == (actions.Compare(AT.position, made),)
    state, plan = after(state, same(made))
    assert plan == (actions.Settle(Visible(0, 0), 9, made.to),)
    state, plan = after(state, PROVEN)
    assert state.cursor == Cursor(made.to, 9, 4, 0xB0, 5, Visible(4, 9))
    assert plan[0] == actions.SaveProgress(state.at, IDENTITY, begins=True)


@pytest.mark.parametrize(
    "difference",
    [
        {"message_ids": IDS[::-1]},
        {"message_ids": IDS[:1]},
        {"message_ids": (*IDS, b"c" * 16)},
        {"below_watermark": False},
    ],
    ids=["another order", "one missing", "one more", "not final"],
)
def test_a_manifest_that_differs_is_history_and_the_position_stays(
    difference: dict[str, object],
) -> None:
    made = manifest()
    state, plan = after(replaying(), read(made), same(made, **difference))
    moved = Cursor(AT.position, 6, 4, 0xB0, 4)
    assert plan == (actions.Recover(made, 5, moved, IDENTITY),)
    assert after(state, answers.Recovered())[0].at.position == AT.position


def test_a_range_that_does_not_begin_at_the_position_is_history() -> None:
    made = manifest(after=Position(80, 1))
    _, plan = after(replaying(), read(made), same(made))
    assert isinstance(plan[0], actions.Recover)


def test_a_held_entry_needs_its_held_record() -> None:
    made = manifest(entries=(Entry(IDS[0], PUBLISHED), Entry(IDS[1], HELD)))
    state, _ = after(replaying(), read(made))
    assert isinstance(after(state, same(made))[1][0], actions.Recover)
    fast = after(state, same(made, held=frozenset(IDS[1:])))[0]
    assert fast.at.position == made.to


def test_after_the_first_difference_no_manifest_is_compared() -> None:
    one = manifest()
    behind = Cursor(one.to, 0, one.batch_no, 0xB0, one.gen)
    two = manifest(behind, b"c" * 16)
    state, _ = after(replaying(), read(one, two), same(one, below_watermark=False))
    _, plan = after(state, answers.Recovered())
    assert plan == (actions.Recover(two, 7, Cursor(AT.position, 8, 5, 0xB1, 4), IDENTITY),)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (manifest(batch_no=5), HaltReason.CHAIN_BROKEN),
        (manifest(batch_no=3), HaltReason.CHAIN_BROKEN),
        (manifest(prev_crc=1), HaltReason.CHAIN_BROKEN),
        (manifest(shard=4), HaltReason.CHAIN_BROKEN),
        (None, HaltReason.CHAIN_BROKEN),
        (manifest(installation=UUID(int=8)), HaltReason.FOREIGN_MANIFEST),
    ],
    ids=["gap", "repeat", "crc", "shard", "no manifest", "another installation"],
)
def test_a_broken_chain_halts(made: Manifest | None, reason: HaltReason) -> None:
    state, plan = after(replaying(), read(made))
    assert (state.phase, state.halt, plan[0]) == (Phase.HALT, reason, actions.StoreHalt(reason))


def test_manifests_are_read_on_until_the_end_is_reached() -> None:
    made = manifest()
    _, plan = after(replaying(end=20), read(made, reached=False), same(made))
    assert plan == (actions.ReadManifests(6, 20),)


def test_an_end_that_is_not_reached_halts_and_is_retried() -> None:
    nothing = answers.ManifestsRead((), False, 4.9)
    state, plan = after(replaying(), nothing)
    assert plan == (actions.Rest(0.0),)
    state, plan = after(state, answers.ManifestsRead((), False, 50.0))
    assert plan == (actions.ReadOpenManifests(9),)
    foreign = answers.OpenManifestsRead(())
    assert after(state, foreign)[1] == (actions.Rest(0.0),)
    state, plan = after(state, answers.ManifestsRead((), False, 10.0), foreign)
    assert plan == (actions.StoreHalt(HaltReason.REPLAY_STUCK), actions.Rest(5.0))
    assert after(state, answers.Rested())[1] == (actions.ReadManifests(5, 9),)
    reached = (answers.Rested(), answers.ManifestsRead((), True), PROVEN)
    assert after(state, *reached)[0].halt is None


def test_a_new_owner_writes_a_higher_generation() -> None:
    made = manifest(gen=9)
    state, _ = after(replaying(), read(made), same(made), PROVEN)
    assert state.at.gen == 10
