"""The breaker of a producer group: an endpoint that keeps failing is asked seldom, never judged.

It opens when most of the calls of a minute failed, lets one probe through after a while, and waits
longer after each probe that failed (interfaces 2.6). Open means waiting: nothing is spent and
nothing is decided. Pure: PostgreSQL's time comes in as a value.
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
    """Whether a group's endpoint is asked."""

    CLOSED = "closed"
    HALF_OPEN = "half-open"
    """The next call is a probe."""
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A breaker that is not closed: when the next probe may be made, and how long it waits."""

    wait_seconds: int
    probe_at: datetime

    def state(self, now: datetime) -> BreakerState:
        """Return whether a probe is due."""
        return BreakerState.HALF_OPEN if now >= self.probe_at else BreakerState.OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The calls of one round that say something about the endpoint, and how many of them failed."""

    at: datetime
    calls: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChange:
    """What a round does to the breaker: it waits this long from now on, or closes (None)."""

    wait_seconds: int | None


def within_window(recent: Sequence[Tally], now: datetime) -> tuple[Tally, ...]:
    """Forget what is older than the window."""
    return tuple(tally for tally in recent if now - tally.at < WINDOW)


def after_calls(recent: Sequence[Tally]) -> BreakerChange | None:
    """Open a closed breaker when at least ten calls of the window failed at 70 % or more."""
    calls = sum(tally.calls for tally in recent)
    failed = sum(tally.failed for tally in recent)
    if calls < CALLS_AT_LEAST or failed * 100 < calls * FAILED_PERCENT:
        return None
    return BreakerChange(wait_seconds=FIRST_WAIT_SECONDS)


def after_probe(breaker: Breaker, probe: Tally) -> BreakerChange:
    """Close after a probe that came back; double the wait after one that failed.

    A probe that says nothing (it was blocked, or could not be built) waits as long as before.
    """
    if probe.calls == 0:
        return BreakerChange(wait_seconds=breaker.wait_seconds)
    if probe.failed == 0:
        return BreakerChange(wait_seconds=None)
    return BreakerChange(wait_seconds=min(breaker.wait_seconds * 2, LONGEST_WAIT_SECONDS))
