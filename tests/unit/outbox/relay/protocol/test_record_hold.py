"""Refused records: they are held by name with their scope, and released in order."""

from __future__ import annotations

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


def test_commits_and_releases_alternate() -> None:
    state, plan = after(running(), replace(commits(*IDS), due=True))
    assert plan == (actions.ReadHeld(AT.position, None),)
    assert after(replace(state, released_last=True), DUE)[1] == (
        actions.ReadHeld(AT.position, None),
    )
