from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.breaker import (
    CLOSES,
    Breaker,
    BreakerState,
    Tally,
    after_calls,
    after_probe,
    within_window,
)

NOW = datetime(2026, 9, 21, tzinfo=UTC)
OPENS = 30


def tally(calls: int, failed: int, at: datetime = NOW) -> Tally:
    return Tally(at=at, calls=calls, failed=failed)


@pytest.mark.parametrize(
    ("calls", "failed", "change"),
    [(9, 9, None), (10, 6, None), (10, 7, OPENS), (100, 69, None), (100, 70, OPENS)],
)
def test_it_opens_when_ten_calls_failed_at_seventy_percent(
    calls: int, failed: int, change: int | None
) -> None:
    assert after_calls([tally(calls, failed)]) == change


def test_calls_count_for_a_minute() -> None:
    old, young = tally(9, 9, NOW - timedelta(seconds=60)), tally(9, 9, NOW - timedelta(seconds=59))
    assert within_window([old, young, tally(1, 1)], NOW) == (young, tally(1, 1))


def test_a_probe_is_due_after_the_wait() -> None:
    breaker = Breaker(wait_seconds=30, probe_at=NOW)
    assert breaker.state(NOW - timedelta(milliseconds=1)) is BreakerState.OPEN
    assert breaker.state(NOW) is BreakerState.HALF_OPEN


def test_each_failed_probe_doubles_the_wait_up_to_five_minutes() -> None:
    waits = [30]
    for _ in range(5):
        waits.append(after_probe(Breaker(wait_seconds=waits[-1], probe_at=NOW), tally(1, 1)))
    assert waits == [30, 60, 120, 240, 300, 300]


def test_a_successful_probe_closes_it() -> None:
    breaker = Breaker(wait_seconds=300, probe_at=NOW)
    assert after_probe(breaker, tally(1, 0)) == CLOSES


def test_a_probe_without_a_result_keeps_the_wait() -> None:
    breaker = Breaker(wait_seconds=60, probe_at=NOW)
    assert after_probe(breaker, tally(0, 0)) == 60


@pytest.mark.parametrize(
    ("answer", "feeds"),
    [
        (CheckAnswer(outcome=Outcome.TIMEOUT), True),
        (CheckAnswer(outcome=Outcome.UNREACHABLE), True),
        (CheckAnswer(outcome=Outcome.HTTP_ERROR, http_status=500), True),
        (CheckAnswer(outcome=Outcome.HTTP_ERROR, http_status=429), False),
        (CheckAnswer(outcome=Outcome.BAD_VERDICT), False),
        (CheckAnswer(outcome=Outcome.UNKNOWN), False),
    ],
)
def test_silence_and_server_errors_feed_it_and_answers_do_not(
    answer: CheckAnswer, feeds: bool
) -> None:
    assert answer.feeds_breaker == feeds


def test_a_blocked_call_does_not_count_for_the_endpoint() -> None:
    assert not CheckAnswer(outcome=Outcome.BLOCKED).reached_endpoint
