"""Refused records: halved until alone, held with their scope, released in order."""

from __future__ import annotations

from dataclasses import replace

from outbox.messages.manifest import HELD, PUBLISHED, PUBLISHED_BEFORE, Entry, Kind
from outbox.relay.protocol import actions as do
from outbox.relay.protocol import answers as came
from outbox.relay.protocol.bisection import narrowed, passed
from outbox.relay.protocol.state import WIDE, Narrowing, Phase, Refused
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDENTITY,
    IDS,
    after,
    commits,
    in_batch,
    manifest,
    running,
)

REFUSED = came.Delivered(0, Refused.RECORD)
FOUR = (b"a" * 16, b"b" * 16, b"c" * 16, b"d" * 16)
DUE = replace(commits(), due=True)
HELD_TWO = came.HeldRead(Kind.RELEASE, IDS, frozenset(IDS[:1]))


def test_a_refused_batch_is_halved_until_the_record_stands_alone() -> None:
    four = manifest(AT, *FOUR)
    assert narrowed(four) == Narrowing(4, 2)
    assert passed(Narrowing(4, 2), 2) == Narrowing(2, 1)
    assert passed(Narrowing(2, 1), 1) == Narrowing(1, 1)
    assert passed(Narrowing(1, 1), 1) == WIDE


def test_a_refusal_is_no_failure_and_does_not_lengthen_the_rests() -> None:
    state, plan = after(in_batch(*FOUR), REFUSED)
    assert (state.phase, state.failures) == (Phase.VERIFY, 0)
    assert plan == (do.DropHandle("refused"), do.Rest(0.1))


def test_a_record_refused_once_alone_is_tried_again_and_held_the_second_time() -> None:
    once, plan = after(in_batch(FOUR[0]), REFUSED)
    assert not any(isinstance(action, do.Hold) for action in plan)
    again = replace(in_batch(FOUR[0]), narrowing=once.narrowing)
    twice, plan = after(again, REFUSED)
    assert again.batch is not None
    hold = do.Hold(again.batch, (FOUR[0],), Refused.RECORD)
    assert plan == (do.DropHandle("refused"), hold, do.Rest(0.1))
    assert twice.narrowing == WIDE


def test_what_must_wait_is_stored_before_the_batch_that_lists_it() -> None:
    state, plan = after(running(), replace(commits(*IDS), held=frozenset(IDS[1:])))
    batch = state.batch
    assert batch is not None
    assert batch.entries == (Entry(IDS[0], PUBLISHED), Entry(IDS[1], HELD))
    assert plan == (do.Hold(batch, IDS[1:], None), do.Begin(), do.Publish(batch))


def test_a_release_has_an_empty_range_and_publishes_nothing_that_kafka_has() -> None:
    state, plan = after(running(), DUE, HELD_TWO)
    batch = state.batch
    assert batch is not None
    assert (batch.kind, batch.after, batch.to) == (Kind.RELEASE, AT.position, AT.position)
    assert batch.entries == (Entry(IDS[0], PUBLISHED_BEFORE), Entry(IDS[1], PUBLISHED))
    assert plan == (do.Begin(), do.Publish(batch))


def test_a_committed_release_is_marked_with_the_cursor_and_only_then_goes_on() -> None:
    begun, _ = after(running(), DUE, HELD_TWO)
    sent = (came.Delivered(1, None), came.ManifestDelivered(7, 0xCC), came.CommitEnded(1.0, 0.1))
    state, plan = after(begun, *sent)
    assert begun.batch is not None
    assert plan == (do.MarkReleased(begun.batch, state.at, IDENTITY), do.Rest(0.0))
    assert (state.at.manifest_offset, state.at.position) == (8, AT.position)


def test_a_refused_release_is_postponed_and_commits_come_first_then() -> None:
    begun, _ = after(running(), DUE, HELD_TWO)
    state, plan = after(begun, REFUSED)
    postpone = do.Postpone(IDS[1], Refused.RECORD)
    assert plan == (do.DropHandle("refused"), postpone, do.Rest(0.1))
    assert state.released_last
    waiting = replace(running(), released_last=True)
    assert isinstance(after(waiting, replace(commits(*IDS), due=True))[1][0], do.Begin)


def test_commits_and_releases_take_turns() -> None:
    state, plan = after(running(), replace(commits(*IDS), due=True))
    assert plan == (do.ReadHeld(AT.position, None),)
    assert after(replace(state, released_last=True), DUE)[1] == (do.ReadHeld(AT.position, None),)
