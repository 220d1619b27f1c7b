"""The delay classes of the check queue: few classes, each first in, first out.

A class has rows with one delay, so they come due in the order of their ids and no search is
needed. What a group is configured with is exact. Delays that vary freely (jitter, Retry-After, the
immunity of a message) are rounded up to a limited set: to the second up to a minute, then in steps
of about 5 %. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import timedelta
from math import ceil
from typing import Final

EXACT_SECONDS: Final = 60
LONGEST_SECONDS: Final = 86_400
STEP: Final = 1.05


def _steps() -> tuple[int, ...]:
    steps = [EXACT_SECONDS]
    while steps[-1] < LONGEST_SECONDS:
        steps.append(min(ceil(steps[-1] * STEP), LONGEST_SECONDS))
    return tuple(steps)


STEPS: Final = _steps()
"""The classes above a minute: about 150 up to a day."""


def quantise(seconds: int) -> int:
    """Round a freely varying delay up to a class: exact up to 60 s, then about 5 % apart."""
    if seconds <= EXACT_SECONDS:
        return max(seconds, 0)
    return STEPS[min(bisect_left(STEPS, seconds), len(STEPS) - 1)]


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
