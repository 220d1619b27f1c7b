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
        """Return HALF_OPEN when a probe is due, otherwise OPEN.

        A wait that is longer than it began was stored before the clock was set back: it is over.
        """
        waits = now < self.probe_at <= now + timedelta(seconds=self.wait_seconds)
        return BreakerState.OPEN if waits else BreakerState.HALF_OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The calls of one round that reached the endpoint, and how many of them failed."""

    at: datetime
    calls: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChange:
    """The effect of a round on the breaker: this wait from now on, or closed (None)."""

    wait_seconds: int | None


def within_window(recent: Sequence[Tally], now: datetime) -> tuple[Tally, ...]:
    """Return the counts that are inside the window; a clock that jumps back keeps none longer."""
    return tuple(tally for tally in recent if abs(now - tally.at) < WINDOW)


def after_calls(recent: Sequence[Tally]) -> BreakerChange | None:
    """Open a closed breaker when at least ten calls of the window failed at 70 % or more."""
    calls = sum(tally.calls for tally in recent)
    failed = sum(tally.failed for tally in recent)
    if calls < CALLS_AT_LEAST or failed * 100 < calls * FAILED_PERCENT:
        return None
    return BreakerChange(wait_seconds=FIRST_WAIT_SECONDS)


def after_probe(breaker: Breaker, probe: Tally) -> BreakerChange:
    """Close after a successful probe; double the wait after a failed one.

    A probe without a result (it was blocked, or could not be built) keeps the same wait.
    """
    if probe.calls == 0:
        return BreakerChange(wait_seconds=breaker.wait_seconds)
    if probe.failed == 0:
        return BreakerChange(wait_seconds=None)
    return BreakerChange(wait_seconds=min(breaker.wait_seconds * 2, LONGEST_WAIT_SECONDS))
