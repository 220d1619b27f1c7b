"""The breakers of this process's rounds: what their calls say, and what that does to a breaker.

A checker opens a breaker by what it has seen itself of the last minute; where the breaker stands is
in PostgreSQL, so all checkers wait together and a probe that comes back ends it for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from checker.checks.check_result import CheckResult
from outbox.checks.breaker import (
    BreakerChange,
    BreakerState,
    Tally,
    after_calls,
    after_probe,
    within_window,
)
from outbox.checks.check_round import Answer, DueSlice

_Asking = TypeVar("_Asking")


class Breakers:
    """The recent calls of each group."""

    def __init__(self) -> None:
        self._recent: dict[int, tuple[Tally, ...]] = {}

    def change(self, due: DueSlice, findings: Sequence[CheckResult]) -> BreakerChange | None:
        """Return what a round does to the group's breaker; None leaves it."""
        tally = _tally(due, findings)
        if due.breaker is not None:
            self._recent.pop(due.group.id, None)
            return after_probe(due.breaker, tally) if _asked(findings) else None
        recent = within_window((*self._recent.get(due.group.id, ()), tally), due.now)
        self._recent[due.group.id] = recent
        return after_calls(recent)


def let_through(due: DueSlice, asking: Sequence[_Asking]) -> Sequence[_Asking]:
    """Return what may be asked: all, one probe, or nothing while the breaker is open."""
    if due.breaker is None:
        return asking
    return asking[:1] if due.breaker.state(due.now) is BreakerState.HALF_OPEN else ()


def waits(due: DueSlice, change: BreakerChange | None) -> bool:
    """Say whether the group's halves wait behind an open breaker after this round."""
    if change is None:
        return due.breaker is not None
    return change.wait_seconds is not None


def _tally(due: DueSlice, findings: Sequence[CheckResult]) -> Tally:
    """Count calls, not halves: a batch is one call, whatever it brought for each."""
    calls: dict[int, Answer] = {
        each.call: each.answer
        for each in findings
        if each.answer is not None and each.answer.tells_of_endpoint
    }
    failed = sum(answer.feeds_breaker for answer in calls.values())
    return Tally(at=due.now, calls=len(calls), failed=failed)


def _asked(findings: Sequence[CheckResult]) -> bool:
    return any(each.asked_at is not None for each in findings)
