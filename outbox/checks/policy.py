"""Decides when an undecided half message is checked, put back, parked or rolled back. Pure.

``decide`` returns what to do with a half that is due; ``interval_after`` returns the time to its
next check. PostgreSQL's time is a parameter.

A delay class of the check queue has rows with one delay, so they come due in the order of their ids
and no search is needed. What a group is configured with is exact. Delays that vary freely (jitter,
Retry-After, the immunity of a message) are rounded up to a limited set: to the second up to a
minute, then in steps of about 5 %.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil, log
from typing import Final

from outbox.checks.check_round import QueueRow
from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup

BACKOFF_CAP_SECONDS: Final = 3600
"""Exponential back-off doubles up to this interval."""
EXACT_SECONDS: Final = 60
LONGEST_SECONDS: Final = 86_400
STEP: Final = 1.05


class Decision(StrEnum):
    """What happens to a due half."""

    ASK = "ask"
    PARK_FOR_AGE = "max_age"
    PARK_FOR_CHECKS = "check_max"
    ROLL_BACK = "roll_back"
    """ROLLBACK by the policy that the group has chosen."""


def decide(row: QueueRow, group: ProducerGroup, now: datetime) -> Decision:
    """Decide what happens to a due half of a group that can be asked (P26-P34).

    Spent checks act only at the next due time. Age parks after a question without a verdict, so a
    clock that jumps ahead or a pause of all checkers parks nothing that was not asked about.
    """
    if row.check_count < group.check_max:
        return Decision.ASK
    if is_at_max_age(row, group, now):
        return Decision.PARK_FOR_AGE
    if group.on_check_max is OnCheckMax.ROLLBACK and row.only_unknown:
        return Decision.ROLL_BACK
    return Decision.PARK_FOR_CHECKS


def is_at_max_age(row: QueueRow, group: ProducerGroup, now: datetime) -> bool:
    """Return whether a half that is still undecided is to be parked, under either policy."""
    return now - row.age_from >= timedelta(seconds=group.max_age_seconds)


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


def quantise(seconds: int) -> int:
    """Round a freely varying delay up to a class: exact up to 60 s, then about 5 % apart."""
    if seconds <= EXACT_SECONDS:
        return max(seconds, 0)
    steps = ceil(log(seconds / EXACT_SECONDS, STEP))
    return min(ceil(EXACT_SECONDS * STEP**steps), LONGEST_SECONDS)


def delay_after(interval: timedelta, base_seconds: int, retry_after_seconds: int | None) -> int:
    """Return the whole seconds to the next check.

    The group's own interval is exact. An interval with jitter, or a later time that the endpoint
    asked for, is rounded up to a class. An endpoint can delay a check, never make it earlier.
    """
    seconds = max(int(interval.total_seconds()), retry_after_seconds or 0)
    return seconds if seconds == base_seconds else quantise(seconds)


def class_of_first_check(remaining_seconds: float, groups_immunity_seconds: int | None) -> int:
    """Return the class of a half's first check, from the rest of its immunity.

    A half with the immunity of its group that is swept in time (one to two seconds old) has all of
    it left except the first second, so its class is exact. A half that is swept late, or whose
    producer chose its immunity (None), joins a rounded class, or class 0 if it is already due.
    """
    seconds = max(ceil(remaining_seconds), 0)
    is_exact = groups_immunity_seconds is not None and seconds == groups_immunity_seconds - 1
    return seconds if is_exact else quantise(seconds)
