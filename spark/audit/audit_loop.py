"""The audit loop: run after run in one warm session, until a signal comes.

An unreachable store costs one run; the next run starts from the same state. A session that failed
is not used for another run: the process ends, and its supervisor starts a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable, KafkaUnavailable, RunOvertaken
from spark.jvm.spark_errors import SparkFailure

UNITS: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLoop:
    """Runs an audit at a fixed interval until it is stopped."""

    every_seconds: float
    clock: Clock
    stopped: Callable[[float], bool]
    """Waits this number of seconds; returns whether the loop must end."""
    note: Callable[[str], object]

    def loop(self, run: Callable[[], int]) -> int:
        """Run until stopped; return the exit code of the last run that reached a verdict.

        Runs start ``every_seconds`` apart; after a longer run the next one starts at once. Raises
        what a run raises, except for an unreachable store and a run that another run overtook.
        """
        code = 0
        while True:
            started = self.clock.monotonic()
            try:
                code = run()
            except (DatabaseUnavailable, KafkaUnavailable, RunOvertaken) as error:
                self.note(f"no run: {error}")
            except SparkFailure as failure:
                if not failure.unreachable:
                    raise
                self.note(f"no run: {failure}")
            rest = self.every_seconds - (self.clock.monotonic() - started)
            if self.stopped(max(0.0, rest)):
                return code


def seconds_of(text: str) -> float:
    """Read ``90``, ``90s``, ``15m`` or ``1h``. Raises ValueError for anything else, and for 0."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    with suppress(ValueError):
        seconds = float(number) * UNITS[unit]
        if 1 <= seconds <= 7 * 86_400:
            return seconds
    raise ValueError("expected 90, 90s, 15m or 1h, from 1 second to 7 days")
