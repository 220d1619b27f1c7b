"""The audit loop: run after run in one warm session, until a signal comes.

An unreachable store costs one run; the next run starts from the same state. A session that failed
is not used for another run: the process ends, and its supervisor starts a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable, KafkaUnavailable, RunOvertaken
from spark.jvm.spark_errors import SparkFailure

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST: Final = 7 * UNITS["d"]


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
    """Read ``90s``, ``15m``, ``1h`` or ``1d``. Raises ValueError for anything else, and for 0."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST:
        raise ValueError("expected a number followed by s, m, h or d, such as 15m, from 1s to 7d")
    return seconds
