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
from outbox.relay.protocol.transition import backoff_seconds
from tests.fixtures_replacing import replace
from tests.unit.outbox.relay.protocol.fixtures_steps import (
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


def test_a_manifest_waits_for_its_records_after_a_failure_and_among_suspects() -> None:
    """A refusal of a record that a manifest may list is not acted upon; it is asked for again."""
    failed, _ = after(in_batch(), produced(good=1))
    assert failed.failures == 1
    doubtful = replace(running(), failures=failed.failures)
    suspecting = replace(running(), suspects=2)
    for state in (doubtful, suspecting):
        begun, plan = after(state, commits(*IDS))
        assert begun.batch is not None
        assert plan == (actions.Publish(begun.batch, apart=True),)
    sent = (produced(), answers.CommitEnded(100.0, 0.01), commits(b"c" * 16))
    again, plan = after(doubtful, commits(*IDS), *sent)
    assert again.batch is not None
    assert plan == (actions.Publish(again.batch),)


TOO_LATE = [
    produced(good=1),
    produced(offset=-1),
    answers.Failed(Failure.KAFKA),
    answers.Failed(Failure.FENCED),
]


@pytest.mark.parametrize("failed", TOO_LATE)
def test_a_batch_that_fails_again_is_halved(failed: answers.Answer) -> None:
    """It may be more than Kafka takes in the time of a transaction, for example below a quota."""
    once, _ = after(in_batch(), failed)
    assert once.suspects == 0
    again = replace(running(), failures=once.failures)
    twice, _ = after(again, commits(*IDS), failed)
    assert twice.suspects == 2


def committed(seconds: float = 0.01, at: float = 100.0) -> tuple[Relay, tuple[actions.Action, ...]]:
    return after(in_batch(), produced(), answers.CommitEnded(at, seconds))


def test_progress_is_written_at_most_once_a_second() -> None:
    state, _ = committed(at=100.0)
    more = (commits(b"c" * 16), produced(good=1, offset=9, crc=1))
    early, plan = after(state, *more, answers.CommitEnded(100.9, 0.01))
    assert plan == (actions.Rest(0.0),)
    idle, plan = after(early, commits(at=100.95))
    assert plan == (actions.Rest(pytest.approx(0.05), until_commits=True),)  # type: ignore[arg-type]
    assert isinstance(after(idle, commits(at=101.0))[1][0], actions.SaveProgress)


def test_progress_that_a_caller_waits_for_is_written_twenty_times_a_second() -> None:
    state, _ = committed(at=100.0)
    awaited = replace(commits(b"c" * 16), awaited=True)
    sent = (awaited, produced(good=1, offset=9, crc=1), answers.CommitEnded(100.03, 0.01))
    early, plan = after(state, *sent)
    assert plan == (actions.Rest(0.0),)
    waiting, plan = after(early, commits(at=100.04))
    assert plan == (actions.Rest(pytest.approx(0.01), until_commits=True),)  # type: ignore[arg-type]
    saved, plan = after(waiting, commits(at=100.06))
    assert plan[0] == actions.SaveProgress(saved.at)
    more = (commits(b"d" * 16), produced(good=1, offset=12, crc=1))
    _, plan = after(saved, *more, answers.CommitEnded(100.9, 0.01))
    assert plan == (actions.Rest(0.0),)


def test_an_idle_shard_signs_its_log_once_a_day() -> None:
    state, _ = after(running(), commits(at=0.0))
    state, plan = after(state, commits(at=86_400.0))
    assert state.batch is not None
    assert (state.batch.entries, state.batch.after) == ((), state.batch.to)
    assert plan == (actions.Publish(state.batch),)


# -- Failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Failure.DATABASE, Failure.OVERTAKEN, Failure.FENCED])
def test_a_lost_session_or_a_fence_releases_the_shard(failure: Failure) -> None:
    state, plan = after(in_batch(), answers.Failed(failure))
    assert (state.phase, state.cursor, state.batch) == (Phase.IDLE, None, None)
    assert plan == (actions.DropHandle(failure.value), actions.CloseSession(), actions.Rest(0.1))


def test_a_failure_of_kafka_drops_only_the_handle() -> None:
    state, plan = after(in_batch(), answers.Failed(Failure.KAFKA))
    assert state.phase is Phase.VERIFY
    assert plan == (actions.DropHandle("kafka"), actions.Rest(0.1))
    assert after(state, answers.Rested())[1] == (actions.IdentifyStores(),)


def test_failures_in_a_row_wait_longer_up_to_five_seconds() -> None:
    assert [backoff_seconds(n) for n in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


def test_a_drop_saves_the_progress_before_the_doubt() -> None:
    state, _ = committed()
    dirty = replace(state, dirty=True)
    unsent = (commits(b"c" * 16), answers.DeliveryReport(0))
    assert after(dirty, *unsent)[1][0] == actions.SaveProgress(state.at)


def test_stopping_saves_and_frees_the_shard() -> None:
    state = replace(committed()[0], dirty=True)
    stopped, plan = after(state, answers.StopAsked())
    assert stopped.phase is Phase.IDLE
    assert plan == (
        actions.SaveProgress(state.at),
        actions.DropHandle("stopped"),
        actions.CloseSession(),
        actions.Rest(0.0),
    )
