"""The breaker of a producer group: a failing endpoint is asked rarely, and nothing is decided.

It opens when most calls of a minute failed. After a wait it admits one probe; each failed probe
makes the wait longer. While it is open, nothing is spent and nothing is decided.
Pure: PostgreSQL's time is a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

WINDOW: Final = timedelta(seconds=60)
CALLS_AT_LEAST: Final = 10
FAILED_PERCENT: Final = 70
FIRST_WAIT_SECONDS: Final = 30
LONGEST_WAIT_SECONDS: Final = 300
CLOSES: Final = 0
"""The wait of a breaker that is closed."""


class BreakerState(StrEnum):
    """The state of a group's breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half-open"
    """The next call is a probe."""
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A breaker that is not closed: the time of the next probe, and the current wait."""

    wait_seconds: int
    probe_at: datetime

    def state(self, now: datetime) -> BreakerState:
        """Return HALF_OPEN when a probe is due, otherwise OPEN."""
        return BreakerState.OPEN if now < self.probe_at else BreakerState.HALF_OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The calls of one round that reached the endpoint, and how many of them failed."""

    at: datetime
    calls: int
    failed: int


def within_window(recent: Sequence[Tally], now: datetime) -> tuple[Tally, ...]:
    """Return the counts that are inside the window."""
    return tuple(tally for tally in recent if now - tally.at < WINDOW)


def after_calls(recent: Sequence[Tally]) -> int | None:
    """Return the first wait (s) if at least ten calls of the window failed at 70 % or more."""
    calls = sum(tally.calls for tally in recent)
    failed = sum(tally.failed for tally in recent)
    if calls < CALLS_AT_LEAST or failed * 100 < calls * FAILED_PERCENT:
        return None
    return FIRST_WAIT_SECONDS


def after_probe(breaker: Breaker, probe: Tally) -> int:
    """Return the next wait (s): CLOSES after a successful probe, twice the wait after a failed one.

    A probe without a result (it was blocked, or could not be built) keeps the same wait.
    """
    if probe.calls == 0:
        return breaker.wait_seconds
    if probe.failed == 0:
        return CLOSES
    return min(breaker.wait_seconds * 2, LONGEST_WAIT_SECONDS)
