"""Attempts are limited in time, and spread by jitter."""

from outbox_client.calls.retry import Attempts, pause_ceiling
from outbox_client.errors import ServiceUnreachable


def make_attempts(budget: float = 10.0, times: list[float] | None = None) -> Attempts:
    moments = iter(times or [0.0] * 100)
    return Attempts(
        budget_seconds=budget,
        now=lambda: next(moments),
        jitter=lambda: 1.0,
    )


def test_the_pause_doubles_up_to_a_cap() -> None:
    ceilings = [pause_ceiling(attempt) for attempt in (1, 2, 3, 6, 7, 1000)]
    assert ceilings == [0.05, 0.1, 0.2, 1.6, 2.0, 2.0]


def test_one_attempt_takes_at_most_half_of_the_time() -> None:
    assert make_attempts(budget=10.0).attempt_seconds() == 5.0


def test_the_last_attempt_gets_only_what_is_left() -> None:
    attempts = make_attempts(budget=10.0, times=[0.0, 0.0, 8.0])
    assert attempts.attempt_seconds() == 5.0
    assert attempts.attempt_seconds() == 2.0


def test_no_attempt_follows_when_the_time_is_used_up() -> None:
    attempts = make_attempts(budget=10.0, times=[0.0, 0.0, 9.97])
    attempts.attempt_seconds()
    assert attempts.pause_before_retry(ServiceUnreachable("down")) is None


def test_retry_after_is_honoured_within_the_time() -> None:
    error = ServiceUnreachable("busy")
    error.retry_after_seconds = 3.0
    attempts = make_attempts()
    attempts.attempt_seconds()
    assert attempts.pause_before_retry(error) == 3.0
