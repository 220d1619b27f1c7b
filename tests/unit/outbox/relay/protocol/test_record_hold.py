"""Refused records: they are held by name with their scope, and released in order."""

from __future__ import annotations

from outbox.messages.manifest import HELD, PUBLISHED, PUBLISHED_BEFORE, Entry, Kind
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Phase, Refusal, Refused
from outbox.relay.protocol.transition import most_of
from tests.fixtures_replacing import replace
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDS,
    after,
    commits,
    in_batch,
    running,
)

REFUSAL = Refusal(0, "too large", Refused.RECORD)
REFUSED = answers.DeliveryReport(0, REFUSAL)
FOUR = (b"a" * 16, b"b" * 16, b"c" * 16, b"d" * 16)
DUE = replace(commits(), due=True)
HELD_TWO = answers.Commits(AT.position, IDS, before=frozenset(IDS[:1]), kind=Kind.RELEASE)


def test_a_batch_is_halved_until_the_record_that_kafka_does_not_name_is_alone() -> None:
    state, _ = after(in_batch(*FOUR), REFUSED)
    tried = []
    while state.suspects:
        tried.append((state.suspects, most_of(state.suspects)))
        half = FOUR[: most_of(state.suspects)]
        sent = answers.DeliveryReport(len(half), offset=7)
        running_on = replace(running(), suspects=state.suspects)
        state, _ = after(running_on, commits(*half), sent, answers.CommitEnded(100.0, 0.1))
    assert (tried, most_of(0)) == ([(4, 2), (2, 1), (1, 1)], None)


def test_a_refusal_is_no_failure_and_does_not_lengthen_the_rests() -> None:
    state, plan = after(in_batch(*FOUR), REFUSED)
    assert (state.phase, state.failures) == (Phase.VERIFY, 0)
    assert plan == (actions.DropHandle("refused"), actions.Rest(0.1))


def test_the_record_that_kafka_names_is_held_without_halving_the_batch() -> None:
    begun = in_batch(*FOUR)
    refusal = Refusal(2, "unknown topic", Refused.TOPIC, named=True)
    state, plan = after(begun, answers.DeliveryReport(3, refusal))
    assert begun.batch is not None
    hold = actions.HoldRecords(begun.batch, (FOUR[2],), refusal)
    assert plan == (actions.DropHandle("refused"), hold, actions.Rest(0.1))
    assert state.suspects == 0


def test_what_must_wait_is_stored_before_the_batch_that_lists_it() -> None:
    state, plan = after(running(), replace(commits(*IDS), held=frozenset(IDS[1:])))
    batch = state.batch
    assert batch is not None
    assert batch.entries == (Entry(IDS[0], PUBLISHED), Entry(IDS[1], HELD))
    assert plan == (
        actions.HoldRecords(batch, IDS[1:], None),
        actions.Publish(batch),
    )


def test_a_release_has_an_empty_range_and_publishes_nothing_that_kafka_has() -> None:
    state, plan = after(running(), DUE, HELD_TWO)
    batch = state.batch
    assert batch is not None
    assert (batch.kind, batch.after, batch.to) == (Kind.RELEASE, AT.position, AT.position)
    assert batch.entries == (Entry(IDS[0], PUBLISHED_BEFORE), Entry(IDS[1], PUBLISHED))
    assert plan == (actions.Publish(batch, apart=True),)


def test_a_committed_release_is_marked_with_the_cursor_before_the_next_batch() -> None:
    begun, _ = after(running(), DUE, HELD_TWO)
    sent = (
        answers.DeliveryReport(1, offset=7, crc=0xCC),
        answers.CommitEnded(1.0, 0.1),
    )
    state, plan = after(begun, *sent)
    assert begun.batch is not None
    assert plan == (actions.MarkReleased(begun.batch, state.at), actions.Rest(0.0))
    assert (state.at.manifest_offset, state.at.position) == (8, AT.position)


def test_a_refused_release_is_postponed_and_commits_come_first_then() -> None:
    begun, _ = after(running(), DUE, HELD_TWO)
    state, plan = after(begun, REFUSED)
    postpone = actions.Postpone(IDS[1], REFUSAL)
    assert plan == (actions.DropHandle("refused"), postpone, actions.Rest(0.1))
    assert state.released_last
    waiting = replace(running(), released_last=True)
    assert isinstance(after(waiting, replace(commits(*IDS), due=True))[1][0], actions.Publish)


def test_commits_and_releases_alternate() -> None:
    state, plan = after(running(), replace(commits(*IDS), due=True))
    assert plan == (actions.ReadHeld(AT.position, None),)
    assert after(replace(state, released_last=True), DUE)[1] == (
        actions.ReadHeld(AT.position, None),
    )
