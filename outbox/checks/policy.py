"""When an undecided half message is checked, put back, parked or rolled back: pure decisions.

``look`` decides what to do with a half that is due; ``after`` decides when it is due again. Neither
does I/O nor knows a clock: PostgreSQL's time comes in as a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup
from outbox.messages.message import ParkedReason

BACKOFF_CAP_SECONDS: Final = 3600
"""Exponential back-off doubles up to this interval."""

PAUSED_SECONDS: Final = 30
"""How long a look at a paused group's half waits at most, so that unpausing is felt soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An undecided half in the check queue.

    ``check_count`` counts spent checks since prepare or the last recheck; ``only_unknown`` says
    that every one of them was a valid UNKNOWN; ``age_from`` starts its age (prepare or recheck).
    """

    check_count: int
    only_unknown: bool
    age_from: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBack:
    """Ask the producer group; ``attempt`` counts from 1 and rises only with spent checks."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now: look again after ``delay``; nothing is spent."""

    delay: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Set aside undecided."""

    reason: ParkedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBack:
    """Decide ROLLBACK by the policy that the group chose itself."""


Look = CheckBack | Wait | Park | RollBack


def look(waiting: Waiting, group: ProducerGroup, now: datetime) -> Look:
    """Decide what a look at a due half does (P26-P34).

    Age parks under either policy; spent checks act only at the next due time; a paused group is
    not asked and spends nothing, while its halves' age runs on.
    """
    if now - waiting.age_from >= timedelta(seconds=group.max_age_seconds):
        return Park(reason=ParkedReason.MAX_AGE)
    if now < waiting.due_at:
        return Wait(delay=waiting.due_at - now)
    if group.paused:
        return Wait(delay=timedelta(seconds=min(group.check_interval_seconds, PAUSED_SECONDS)))
    if waiting.check_count < group.check_max:
        return CheckBack(attempt=waiting.check_count + 1)
    if group.on_check_max is OnCheckMax.ROLLBACK and waiting.only_unknown:
        return RollBack()
    return Park(reason=ParkedReason.CHECK_MAX)


def interval_after(group: ProducerGroup, check_count: int, jitter: float) -> timedelta:
    """Return the time from one check to the next.

    ``check_count`` counts the spent checks, ``jitter`` is uniform in [0, 1) and is used by the
    exponential form alone (full jitter: anything between the base interval and the doubled one).
    """
    base = group.check_interval_seconds
    if group.backoff is Backoff.FIXED:
        return timedelta(seconds=base)
    doubled = min(base * 2 ** min(max(check_count - 1, 0), 16), max(BACKOFF_CAP_SECONDS, base))
    return timedelta(seconds=base + int((doubled - base) * jitter))


def immunity(group: ProducerGroup, check_immunity_seconds: int | None) -> timedelta:
    """Return the time after prepare in which a half is not checked (P27, P28)."""
    return timedelta(seconds=check_immunity_seconds or group.transaction_timeout_seconds)
