"""The relay takes a shard over: each test brings a state to a point and checks the next plan."""

from __future__ import annotations

from uuid import UUID

import pytest

from outbox.messages.manifest import Manifest
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Cursor, HaltReason, Phase
from outbox.relay.protocol.takeover import FENCE_SECONDS
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
    stored,
)

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


def test_after_the_first_difference_no_manifest_is_compared() -> None:
    one = manifest()
    behind = Cursor(one.to, 0, one.batch_no, 0xB0, one.gen)
    two = manifest(behind, b"c" * 16)
    not_final = answers.Compared(IDS, below_watermark=False, held=frozenset())
    state, _ = after(replaying(), read(one, two), not_final)
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
