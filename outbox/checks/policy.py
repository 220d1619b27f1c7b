"""Decides when an undecided half message is checked, put back, parked or rolled back. Pure.

``decide`` returns what to do with a half that is due; ``interval_after`` returns the time to its
next check. PostgreSQL's time is a parameter.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup
from outbox.checks.queue_row import QueueRow

BACKOFF_CAP_SECONDS: Final = 3600
"""Exponential back-off doubles up to this interval."""


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
