"""Attempts are limited in time, spread by jitter, and end when the producer closes."""

from threading import Event

from outbox_client.errors import BadAnswer, ServiceUnreachable
from outbox_client.retry import Attempts, pause_ceiling


class RecordingEvent(Event):
    """Records the requested waits, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return self.is_set()


def make_attempts(budget: float = 10.0, times: list[float] | None = None) -> Attempts:
    moments = iter(times or [0.0] * 100)
    return Attempts(
        budget_seconds=budget,
        closing=RecordingEvent(),
        now=lambda: next(moments),
        jitter=lambda: 1.0,
    )


def waits_of(attempts: Attempts) -> list[float]:
    assert isinstance(attempts.closing, RecordingEvent)
    return attempts.closing.waits


def test_the_pause_doubles_up_to_a_cap() -> None:
    ceilings = [pause_ceiling(attempt) for attempt in (1, 2, 3, 6, 7, 1000)]
    assert ceilings == [0.05, 0.1, 0.2, 1.6, 2.0, 2.0]


def test_the_pause_is_a_random_share_of_its_ceiling() -> None:
    attempts = make_attempts()
    attempts.jitter = lambda: 0.25
    attempts.attempt_seconds()
    assert attempts.wait_for_retry(ServiceUnreachable("down"))
    assert waits_of(attempts) == [0.0125]


def test_one_attempt_takes_at_most_half_of_the_time() -> None:
    assert make_attempts(budget=10.0).attempt_seconds() == 5.0


def test_an_attempt_that_waits_for_publication_may_take_longer() -> None:
    attempts = make_attempts(budget=15.0)
    attempts.floor_seconds = 11.0
    assert attempts.attempt_seconds() == 11.0


def test_the_last_attempt_gets_only_what_is_left() -> None:
    attempts = make_attempts(budget=10.0, times=[0.0, 0.0, 8.0])
    assert attempts.attempt_seconds() == 5.0
    assert attempts.attempt_seconds() == 2.0


def test_no_attempt_follows_when_the_time_is_used_up() -> None:
    attempts = make_attempts(budget=10.0, times=[0.0, 0.0, 9.97])
    attempts.attempt_seconds()
    assert not attempts.wait_for_retry(ServiceUnreachable("down"))


def test_an_error_that_is_not_retryable_is_not_retried() -> None:
    attempts = make_attempts()
    attempts.attempt_seconds()
    assert not attempts.wait_for_retry(BadAnswer("html"))


def test_retry_after_is_honoured_within_the_time() -> None:
    error = ServiceUnreachable("busy")
    error.retry_after_seconds = 3.0
    attempts = make_attempts()
    attempts.attempt_seconds()
    assert attempts.wait_for_retry(error)
    assert waits_of(attempts) == [3.0]


def test_a_retry_after_beyond_the_time_ends_the_attempts() -> None:
    error = ServiceUnreachable("busy")
    error.retry_after_seconds = 30.0
    attempts = make_attempts()
    attempts.attempt_seconds()
    assert not attempts.wait_for_retry(error)
    assert waits_of(attempts) == []


def test_closing_the_producer_ends_the_attempts() -> None:
    attempts = make_attempts()
    attempts.attempt_seconds()
    attempts.closing.set()
    assert not attempts.wait_for_retry(ServiceUnreachable("down"))
