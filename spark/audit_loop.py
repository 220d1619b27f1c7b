"""The resident job: run after run in one warm session, until a signal comes.

A store that is away costs one run; the next one starts from the same state. A session that failed
is not trusted with another run: the process ends, and who runs it starts a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable, KafkaUnavailable, RunOvertaken
from spark.spark_errors import SparkFailure

UNITS: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLoop:
    """How the resident job waits and what it says."""

    every_seconds: float
    clock: Clock
    stopped: Callable[[float], bool]
    """Waits so many seconds; tells whether it is time to end."""
    note: Callable[[str], object]

    def loop(self, run: Callable[[], int]) -> int:
        """Run until stopped; return the exit code of the last run that reached a verdict.

        Runs start ``every_seconds`` apart; one that takes longer is followed at once. Raises
        whatever a run raises, save for a store that is away and a run that another one overtook.
        """
        code = 0
        while True:
            begun = self.clock.monotonic()
            try:
                code = run()
            except (DatabaseUnavailable, KafkaUnavailable, RunOvertaken) as error:
                self.note(f"no run: {error}")
            except SparkFailure as failure:
                if not failure.unreachable:
                    raise
                self.note(f"no run: {failure}")
            rest = self.every_seconds - (self.clock.monotonic() - begun)
            if self.stopped(max(0.0, rest)):
                return code


def seconds_of(text: str) -> float:
    """Read ``90``, ``90s``, ``15m`` or ``1h``. Raises ValueError for anything else, and for 0."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    with suppress(ValueError):
        seconds = float(number) * UNITS[unit]
        if 1 <= seconds <= 7 * 86_400:
            return seconds
    raise ValueError("90, 90s, 15m or 1h is wanted, from 1 second to 7 days")
