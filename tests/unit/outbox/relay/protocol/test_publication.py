"""The relay publishes, is in doubt or fails: each test checks the plan at one point."""

from __future__ import annotations

import pytest

from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import (
    Failure,
    Phase,
    Refusal,
    Refused,
    Relay,
)
from outbox.relay.protocol.transition import backoff_seconds, most_of
from tests.fixtures_replacing import replace
from tests.unit.outbox.relay.protocol.fixtures_steps import (
    AT,
    IDS,
    after,
    commits,
    in_batch,
    running,
)

# -- RUN -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delivered", "reason"),
    [
        (answers.DeliveryReport(1), "undelivered"),
        (answers.DeliveryReport(3), "undelivered"),
        (answers.DeliveryReport(1, Refusal(0, "too large", Refused.RECORD)), "refused"),
    ],
)
def test_a_report_too_few_drops_the_handle(delivered: answers.DeliveryReport, reason: str) -> None:
    state, plan = after(in_batch(), delivered)
    assert state.phase is Phase.VERIFY
    assert plan == (actions.DropHandle(reason), actions.Rest(0.1))


def produced(good: int = 2, offset: int = 7, crc: int = 0xCC) -> answers.DeliveryReport:
    return answers.DeliveryReport(good, offset=offset, crc=crc)


@pytest.mark.parametrize("offset", [-1, 4], ids=["unknown", "below the last one"])
def test_a_manifest_without_a_credible_offset_is_not_committed(offset: int) -> None:
    _, plan = after(in_batch(), produced(offset=offset))
    assert plan == (actions.DropHandle("manifest"), actions.Rest(0.1))


def committed() -> Relay:
    """Return a relay that has published a batch at 100.0."""
    return after(in_batch(), produced(), answers.CommitEnded(100.0, 0.01))[0]


def test_progress_is_written_at_most_once_a_second() -> None:
    state = committed()
    more = (commits(b"c" * 16), produced(good=1, offset=9, crc=1))
    early, plan = after(state, *more, answers.CommitEnded(100.9, 0.01))
    assert plan == (actions.Rest(0.0),)
    idle, plan = after(early, commits(at=100.95))
    assert plan == (actions.Rest(pytest.approx(0.05), until_commits=True),)  # type: ignore[arg-type]
    assert isinstance(after(idle, commits(at=101.0))[1][0], actions.SaveProgress)


def test_progress_that_a_caller_waits_for_is_written_twenty_times_a_second() -> None:
    state = committed()
    awaited = replace(commits(b"c" * 16), awaited=True)
    sent = (awaited, produced(good=1, offset=9, crc=1), answers.CommitEnded(100.03, 0.01))
    early, plan = after(state, *sent)
    assert plan == (actions.Rest(0.0),)
    waiting, plan = after(early, commits(at=100.04))
    assert plan == (actions.Rest(pytest.approx(0.01), until_commits=True),)  # type: ignore[arg-type]
    assert isinstance(after(waiting, commits(at=100.06))[1][0], actions.SaveProgress)


def test_an_idle_shard_signs_its_log_once_a_day() -> None:
    state, _ = after(running(), commits(at=0.0))
    state, plan = after(state, commits(at=86_400.0))
    assert state.batch is not None
    assert (state.batch.entries, state.batch.after) == ((), state.batch.to)
    assert plan == (actions.Publish(state.batch),)


# -- Failures ------------------------------------------------------------------------------------


def test_a_failure_of_kafka_drops_only_the_handle() -> None:
    state, plan = after(in_batch(), answers.Failed(Failure.KAFKA))
    assert state.phase is Phase.VERIFY
    assert plan == (actions.DropHandle("kafka"), actions.Rest(0.1))
    assert after(state, answers.Rested())[1] == (actions.IdentifyStores(),)


def test_failures_in_a_row_wait_longer_up_to_five_seconds() -> None:
    assert [backoff_seconds(n) for n in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


def test_commits_and_releases_alternate() -> None:
    waiting = replace(commits(*IDS), due=True)
    _, plan = after(running(), waiting)
    assert plan == (actions.ReadHeld(AT.position, None),)
    _, plan = after(replace(running(), released_last=True), waiting)
    assert isinstance(plan[0], actions.Publish)


def test_a_batch_is_halved_until_the_record_that_kafka_does_not_name_is_alone() -> None:
    four = (b"a" * 16, b"b" * 16, b"c" * 16, b"d" * 16)
    refused = answers.DeliveryReport(0, Refusal(0, "too large", Refused.RECORD))
    state, _ = after(running(), commits(*four), refused)
    tried = []
    while state.suspects:
        tried.append((state.suspects, most_of(state.suspects)))
        half = four[: most_of(state.suspects)]
        sent = answers.DeliveryReport(len(half), offset=7)
        running_on = replace(running(), suspects=state.suspects)
        state, _ = after(running_on, commits(*half), sent, answers.CommitEnded(100.0, 0.1))
    assert (tried, most_of(0)) == ([(4, 2), (2, 1), (1, 1)], None)
