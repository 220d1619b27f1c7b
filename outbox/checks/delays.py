"""Which delay class of the check queue a delay belongs to: few classes, each first in, first out.

A class holds rows appended with one delay, so they come due in the order of their ids and nobody
has to search. Check intervals are exact integers; delays that vary freely (jitter, Retry-After) are
rounded up to a limited set: to the second up to a minute, then in steps of about 5 %. Pure.
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


def quantised(seconds: int) -> int:
    """Round a freely varying delay up to a class: exact up to 60 s, then about 5 % apart."""
    if seconds <= EXACT_SECONDS:
        return max(seconds, 0)
    return STEPS[min(bisect_left(STEPS, seconds), len(STEPS) - 1)]


def delay_after(interval: timedelta, base_seconds: int, retry_after_seconds: int | None) -> int:
    """Return the whole seconds to the next check.

    The group's own interval stays exact; a jittered one, or a later time that the endpoint asked
    for, is rounded up to a class. An endpoint can delay a check, never hasten it.
    """
    seconds = max(int(interval.total_seconds()), retry_after_seconds or 0)
    return seconds if seconds == base_seconds else quantised(seconds)


def class_of_first_check(remaining_seconds: float, immunity_seconds: int) -> int:
    """Return the class of a half's first check, from the time that is left of its immunity.

    A half that is swept in time (one to two seconds old) has all but its first second left, so its
    class is exact; one that is swept late joins a rounded class, and class 0 when it is due.
    """
    seconds = max(ceil(remaining_seconds), 0)
    return seconds if seconds == immunity_seconds - 1 else quantised(seconds)
