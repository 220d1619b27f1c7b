"""Decides when an undecided half message is checked, put back, parked or rolled back. Pure.

``decide`` returns what to do with a half that is due; ``interval_after`` returns the time to its
next check. PostgreSQL's time is a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup
from outbox.checks.queue_row import QueueRow
from outbox.messages.message import ParkedReason

BACKOFF_CAP_SECONDS: Final = 3600
"""Exponential back-off doubles up to this interval."""
STEP: Final = timedelta(minutes=2)
"""A clock that differs by more from what was expected has stepped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDoubt:
    """How far an age by PostgreSQL's clock is to be trusted."""

    skipped: timedelta = timedelta(0)
    """What the clock may have skipped: this much of an age may not have passed."""
    stepped_at: datetime | None = None
    """When the clock was last found to have stepped: what seems to come later was before that."""


NO_DOUBT: Final = ClockDoubt()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask the producer group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now: decide again after ``delay``; nothing is spent."""

    delay: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Set the half aside undecided."""

    reason: ParkedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBack:
    """Decide ROLLBACK by the policy that the group has chosen."""


Decision = Ask | Wait | Park | RollBack


def decide(
    row: QueueRow, group: ProducerGroup, now: datetime, doubt: ClockDoubt = NO_DOUBT
) -> Decision:
    """Decide what happens to a due half (P26-P34).

    Age parks under either policy. Spent checks act only at the next due time. A paused group has
    no due rows: it is not asked and spends nothing, while its halves grow older. A half that is
    due later than its delay allows is from before the clock was set back: it waits once more.
    """
    if age(row, now, doubt) >= timedelta(seconds=group.max_age_seconds):
        return Park(reason=ParkedReason.MAX_AGE)
    if now < row.due_at:
        return Wait(delay=min(row.due_at - now, timedelta(seconds=row.delay_seconds)))
    if row.check_count < group.check_max:
        return Ask()
    if group.on_check_max is OnCheckMax.ROLLBACK and row.only_unknown:
        return RollBack()
    return Park(reason=ParkedReason.CHECK_MAX)


def age(row: QueueRow, now: datetime, doubt: ClockDoubt) -> timedelta:
    """Return the time that has certainly passed since the row's age began."""
    since = row.age_from
    if since > now + STEP and doubt.stepped_at is not None:
        since = doubt.stepped_at
    return now - since - doubt.skipped


def interval_after(group: ProducerGroup, check_count: int, jitter: float) -> timedelta:
    """Return the time from one check to the next.

    ``check_count`` counts the spent checks. ``jitter`` is uniform in [0, 1); only the exponential
    form uses it (full jitter: any time between the base interval and the doubled one).
    """
    base = group.check_interval_seconds
    if group.backoff is Backoff.FIXED:
        return timedelta(seconds=base)
    doubled = min(base * 2 ** min(max(check_count - 1, 0), 16), max(BACKOFF_CAP_SECONDS, base))
    return timedelta(seconds=base + int((doubled - base) * jitter))


def immunity(group: ProducerGroup, check_immunity_seconds: int | None) -> timedelta:
    """Return the time after prepare in which a half is not checked (P27, P28)."""
    return timedelta(seconds=check_immunity_seconds or group.transaction_timeout_seconds)
