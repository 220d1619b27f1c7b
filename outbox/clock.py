"""The process's own clock, for pacing and for texts that people read.

No rule of a message depends on it: due times and ages come from PostgreSQL's clock, which is a
value in each read.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time functions that a loop needs."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never jump, for durations and deadlines."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never jump, for durations and deadlines."""
        return time.monotonic()
