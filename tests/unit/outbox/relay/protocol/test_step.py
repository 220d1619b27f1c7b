"""The relay takes a shard over: each test brings a state to a point and checks the next plan."""

from __future__ import annotations

from uuid import UUID

import pytest

from outbox.messages.manifest import HELD, PUBLISHED, Entry, Manifest
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Cursor, Failure, HaltReason, Phase, Progress, first_gen
from outbox.relay.protocol.takeover import FENCE_SECONDS, OWN_SECONDS
from tests.fixtures_replacing import replace
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDENTITY,
    IDLE,
    IDS,
    after,
    identified,
    manifest,
    read,
    replaying,
    running,
    same,
    stored,
)

LEFT_AT = AT._replace(gen=first_gen(1))
FENCE = (actions.Fence(0, FENCE_SECONDS),)

# -- IDLE and VERIFY -----------------------------------------------------------------------------


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
    state, plan = after(IDLE, answers.LockTaken(), identified(stored(), **changed))
    assert (state.phase, state.halt) == (Phase.HALT, reason)
    assert plan[0] == actions.StoreHalt(reason)
    assert not any(isinstance(action, actions.Fence) for action in plan)


def test_a_stored_halt_is_kept_until_somebody_resolves_it() -> None:
    halted = identified(stored(halt=HaltReason.PROGRESS_LOST))
    state, plan = after(IDLE, answers.LockTaken(), halted)
    assert (state.halt, plan) == (HaltReason.PROGRESS_LOST, (actions.Rest(2.0),))
    assert after(state, answers.Rested(), identified(stored()))[1] == FENCE


# -- FENCE and REPLAY ----------------------------------------------------------------------------


def test_only_an_owner_leaves_a_transactional_id_whose_transaction_kafka_cannot_end() -> None:
    stuck, lost = answers.Failed(Failure.STUCK), answers.Failed(Failure.KAFKA)
    owner, plan = after(running(), lost, answers.Rested(), identified(stored()))
    assert plan == (actions.Fence(0, OWN_SECONDS),)
    assert not isinstance(after(owner, lost)[1][0], actions.LeaveTransactionalId)
    state, plan = after(owner, stuck)
    assert plan[0] == actions.LeaveTransactionalId(AT.gen + 1)
    state, plan = after(state, answers.Rested(), identified(stored(LEFT_AT)))
    assert plan == (actions.Fence(1, FENCE_SECONDS),)
    assert not isinstance(after(state, stuck)[1][0], actions.LeaveTransactionalId)


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
    state, _ = after(IDLE, answers.LockTaken(), identified(progress), answers.Fenced())
    halted, plan = after(state, answers.Bounds(progress, start, end))
    assert (halted.halt, plan[0]) == (reason, actions.StoreHalt(reason))


def test_a_relay_learns_from_a_manifest_which_transactional_id_is_in_use() -> None:
    """As of a database that was copied or restored before the shard left the id."""
    state, _ = after(replaying(), read(manifest(gen=LEFT_AT.gen)), answers.Rested())
    state, plan = after(state, identified(stored()))
    assert plan == (actions.Fence(1, FENCE_SECONDS),)
    bounds = (answers.Fenced(), answers.Bounds(stored(), 0, AT.manifest_offset))
    assert after(state, *bounds)[0].at.gen == LEFT_AT.gen + 1


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
    assert plan == (actions.Recover(made, 5, moved),)
    assert after(state, answers.Stored())[0].at.position == AT.position


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
    _, plan = after(state, answers.Stored())
    assert plan == (actions.Recover(two, 7, Cursor(AT.position, 8, 5, 0xB1, 4)),)


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


def test_an_end_that_is_not_reached_halts_and_is_retried() -> None:
    state, plan = after(replaying(), answers.ManifestsRead((), False, 50.0))
    assert plan == (actions.Rest(0.0),)
    state, plan = after(state, answers.ManifestsRead((), False, 10.0))
    assert plan == (actions.StoreHalt(HaltReason.REPLAY_STUCK), actions.Rest(5.0))
    assert after(state, answers.Rested())[1] == (actions.ReadManifests(5, 9),)
    reached = (answers.Rested(), answers.ManifestsRead((), True))
    assert after(state, *reached)[0].halt is None


def test_a_missing_row_halts_the_shard_after_its_progress_is_stored() -> None:
    state, plan = after(replace(running(), dirty=True), answers.Failed(Failure.ROW_MISSING))
    assert (state.phase, state.halt) == (Phase.HALT, HaltReason.ROW_MISSING)
    stored = (actions.SaveProgress(AT._replace(gen=5)), actions.StoreHalt(HaltReason.ROW_MISSING))
    assert plan == (*stored, actions.DropHandle("halted"), actions.Rest(2.0))
