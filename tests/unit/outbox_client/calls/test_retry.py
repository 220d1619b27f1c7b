"""Attempts are limited in time, and spread by jitter."""

from outbox_client.calls.retry import Attempts, pause_ceiling


def test_the_pause_doubles_up_to_a_cap() -> None:
    ceilings = [pause_ceiling(attempt) for attempt in (1, 2, 3, 6, 7, 1000)]
    assert ceilings == [0.05, 0.1, 0.2, 1.6, 2.0, 2.0]


def test_one_attempt_takes_at_most_half_of_the_time() -> None:
    attempts = Attempts(budget_seconds=10.0, now=lambda: 0.0, jitter=lambda: 1.0)
    assert attempts.attempt_seconds() == 5.0
