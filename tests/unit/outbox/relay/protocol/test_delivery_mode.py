"""The first start after at_least_once: manifests are read only if the stored row is older."""

from __future__ import annotations

import pytest

from outbox.messages.manifest import Manifest
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import NO_MANIFESTS, HaltReason, Phase, Relay, Visible
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDLE,
    after,
    manifest,
    read,
    replaying,
    standing,
    stored,
)

ENDED = 5
"""Where the manifests ended when at_least_once began."""
IN_LANE = AT._replace(manifest_offset=NO_MANIFESTS, visible=Visible(2, ENDED))
STARTED = AT._replace(crc=0)


def leaving(start: int = 0, end: int = 9) -> tuple[Relay, tuple[actions.Action, ...]]:
    """Return a relay that has read the bounds of its log, and what it does next."""
    bounds = answers.Bounds(stored(IN_LANE), start, end)
    known = standing(stored(IN_LANE))
    return after(IDLE, answers.Rested(), answers.LockTaken(), known, answers.Fenced(), bounds)


def test_a_row_that_is_older_than_the_end_of_the_mode_reads_what_was_listed_since() -> None:
    state, plan = leaving()
    assert (state.phase, plan) == (Phase.REPLAY, (actions.ReadManifests(ENDED, 9),))


def test_a_row_whose_log_has_not_grown_begins_a_chain_at_its_end() -> None:
    state, _ = leaving(end=ENDED)
    assert (state.phase, state.at.manifest_offset, state.at.crc) == (Phase.RUN, ENDED, 0)


@pytest.mark.parametrize(("start", "end"), [(7, 9), (9, 9), (0, ENDED - 1)])
def test_a_log_that_no_longer_has_what_was_listed_since_halts(start: int, end: int) -> None:
    state, plan = leaving(start, end)
    assert (state.phase, plan[0]) == (Phase.HALT, actions.StoreHalt(HaltReason.PROGRESS_LOST))


def test_a_row_without_the_offset_goes_on_at_the_end_of_the_log() -> None:
    """An earlier version kept none."""
    row = stored(IN_LANE._replace(visible=Visible(3, NO_MANIFESTS)))
    bounds = answers.Bounds(row, 0, 9)
    state, _ = after(IDLE, answers.LockTaken(), standing(row), answers.Fenced(), bounds)
    assert (state.phase, state.at.manifest_offset) == (Phase.RUN, 9)


@pytest.mark.parametrize("number", [AT.batch_no + 1, AT.batch_no + 4])
def test_the_first_manifest_since_begins_a_chain_whatever_the_mode_had_counted(number: int) -> None:
    state, plan = after(leaving()[0], read(manifest(STARTED, batch_no=number)))
    assert state.phase is Phase.REPLAY
    assert isinstance(plan[0], actions.Compare)


@pytest.mark.parametrize(
    "wrong", [manifest(STARTED, batch_no=AT.batch_no), manifest(STARTED, batch_no=7, prev_crc=1)]
)
def test_a_manifest_that_begins_no_chain_halts(wrong: Manifest) -> None:
    state, plan = after(leaving()[0], read(wrong))
    assert (state.phase, plan[0]) == (Phase.HALT, actions.StoreHalt(HaltReason.CHAIN_BROKEN))


def test_a_chain_that_begins_after_the_mode_continues_the_one_before_it() -> None:
    """The row was restored to a time before the mode."""
    first = manifest(batch_no=AT.batch_no + 4, prev_crc=0)
    state, plan = after(replaying(), read(first))
    assert (state.phase, plan) == (Phase.REPLAY, (actions.Compare(AT.position, first),))


def in_the_lane(end: int) -> tuple[Relay, tuple[actions.Action, ...]]:
    """Return a relay of the mode that has read the bounds of its log, and what it does next."""
    known, bounds = standing(stored(IN_LANE)), answers.Bounds(stored(IN_LANE), 0, end)
    lane = Relay(shard=3, at_least_once=True)
    return after(lane, answers.LockTaken(), known, answers.Fenced(), bounds)


def test_the_mode_reads_what_was_listed_since_its_row_and_is_entered_again() -> None:
    state, plan = in_the_lane(end=9)
    assert (state.phase, plan[-1]) == (Phase.FENCE, actions.Fence())
    bounds = answers.Bounds(stored(IN_LANE), 0, 9)
    _, plan = after(state, answers.Fenced(), bounds)
    assert plan == (actions.ReadManifests(ENDED, 9),)


def test_the_mode_keeps_the_offset_while_it_publishes() -> None:
    state, plan = in_the_lane(ENDED)
    assert (state.phase, state.at.visible.offset) == (Phase.RUN, ENDED)
    begun = plan[0]
    assert isinstance(begun, actions.SaveProgress)
    assert begun.cursor.visible.offset == ENDED
