"""The breakers of this process's rounds: the results of their calls, and the effect on a breaker.

A checker opens a breaker by the calls that it has made itself in the last minute. The state of the
breaker is in PostgreSQL. So all checkers wait together, and one successful probe closes it for all.
"""

from __future__ import annotations

from collections.abc import Sequence

from outbox.checks.answer import CheckAnswer
from outbox.checks.breaker import (
    CLOSES,
    BreakerState,
    Tally,
    after_calls,
    after_probe,
    within_window,
)
from outbox.checks.check_round import DueSlice, QueueRow


class GroupBreakers:
    """The recent calls of each group, of the version of its settings that was asked."""

    def __init__(self) -> None:
        self._recent: dict[int, tuple[int, tuple[Tally, ...]]] = {}

    def wait_after(self, due: DueSlice, asked: Sequence[QueueRow]) -> int | None:
        """Return the wait (s) of the group's breaker after a round, or CLOSES; None: no change.

        Calls of before it opened count no more once it is closed, and calls of before a change or
        a resume of the group count no more after it.
        """
        group, tally = due.group, _tally(due, asked)
        version, counted = self._recent.pop(group.id, (group.version, ()))
        if due.breaker is not None:
            return after_probe(due.breaker, tally) if asked else None
        before = counted if version == group.version else ()
        recent = within_window((*before, tally), due.now)
        wait = after_calls(recent)
        if wait is None:
            self._recent[group.id] = group.version, recent
        return wait


def admit(due: DueSlice, rows: Sequence[QueueRow]) -> Sequence[QueueRow]:
    """Return the rows to ask about: all, one probe, or none while the breaker is open."""
    if due.breaker is None:
        return rows
    return rows[:1] if due.breaker.state(due.now) is BreakerState.HALF_OPEN else ()


def stays_open(due: DueSlice, wait: int | None) -> bool:
    """Return whether an open breaker makes the group's halves wait after this round."""
    return due.breaker is not None if wait is None else wait != CLOSES


def _tally(due: DueSlice, asked: Sequence[QueueRow]) -> Tally:
    """Count calls, not halves: a batch is one call, whatever its answers are."""
    calls: dict[int, CheckAnswer] = {
        each.answer.call: each.answer
        for each in asked
        if each.answer is not None and each.answer.reached_endpoint
    }
    failed = sum(answer.feeds_breaker for answer in calls.values())
    return Tally(at=due.now, calls=len(calls), failed=failed)
