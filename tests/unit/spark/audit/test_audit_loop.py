"""The resident job's loop: what ends it, what it survives, how long it rests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable, KafkaUnavailable
from spark.audit.audit_loop import AuditLoop, seconds_of
from spark.jvm.spark_errors import SparkFailure


@dataclass
class Turns:
    """Runs that end as planned, on a clock that only they and the rests move."""

    runs: list[Callable[[], int]]
    seconds_each: float = 0.0
    at: float = 0.0
    rests: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def loop(self) -> int:
        clock = SystemClock()
        clock.monotonic = lambda: self.at  # type: ignore[method-assign]
        resident = AuditLoop(
            every_seconds=60, clock=clock, stopped=self._stopped, note=self.notes.append
        )
        return resident.loop(self._run)

    def _run(self) -> int:
        self.at += self.seconds_each
        return self.runs.pop(0)()

    def _stopped(self, seconds: float) -> bool:
        self.rests.append(seconds)
        self.at += seconds
        return not self.runs


def fail(error: Exception) -> Callable[[], int]:
    def run() -> int:
        raise error

    return run


def test_it_runs_until_stopped_and_exits_as_the_last_run_did() -> None:
    turns = Turns([lambda: 0, lambda: 7])
    assert turns.loop() == 7
    assert turns.rests == [60, 60]


def test_a_run_longer_than_the_interval_is_followed_at_once() -> None:
    turns = Turns([lambda: 0, lambda: 0], seconds_each=90)
    turns.loop()
    assert turns.rests == [0, 0]


@pytest.mark.parametrize(
    "error",
    [
        KafkaUnavailable("no broker answers"),
        DatabaseUnavailable("refused"),
        SparkFailure("Connection refused", unreachable=True),
    ],
)
def test_an_unreachable_store_costs_one_run(error: Exception) -> None:
    turns = Turns([lambda: 8, fail(error), lambda: 0])
    assert turns.loop() == 0
    assert turns.notes == [f"no run: {error}"]


def test_a_failed_session_is_given_no_other_run() -> None:
    turns = Turns([fail(SparkFailure("the JVM is gone", unreachable=False)), lambda: 0])
    with pytest.raises(SparkFailure):
        turns.loop()


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86400)]
)
def test_times_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["5", "90", "3600"])
def test_a_number_without_a_unit_is_refused_with_the_forms_that_are_understood(text: str) -> None:
    """Five is five seconds for one reader and five minutes for another one."""
    with pytest.raises(ValueError, match="a number followed by s, m, h or d"):
        seconds_of(text)


@pytest.mark.parametrize(
    "text", ["", "m", "0", "0s", "-5m", "8d", "nan", "nans", "1000h", "1 h", "1e2s", "s5"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="from 1s to 7d"):
        seconds_of(text)
