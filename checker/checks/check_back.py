"""Check back: asks a producer group about its due halves; ends them, puts them back or parks them.

One round reads the group's due rows, asks, and settles what it found out in one database
transaction; none is open while a producer is asked. A crash in between asks the same rows again,
which is harmless: a check is a question.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from checker.checks.check_caller import Asking, CheckCaller
from checker.checks.check_observer import CheckObserver
from checker.checks.check_result import CheckResult, settlement_of
from checker.checks.group_breakers import Breakers, let_through, waits
from outbox.checks.check_round import DueSlice, Question
from outbox.checks.policy import CheckBack as Ask
from outbox.checks.policy import look
from outbox.checks.ports import CheckQueue
from outbox.errors import CursorMoved
from outbox.failpoints import hit

SLICE_ROWS: Final = 1000
"""Due rows that a round reads at most; what it does not get to stays due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRound:
    """What one round of a group did; ``more`` when it did not get to everything that is due."""

    asked: int = 0
    decided: int = 0
    put_back: int = 0
    parked: int = 0
    dropped: int = 0
    more: bool = False
    superseded: bool = False
    """Another checker had settled these rows; nothing was written."""


class CheckBack:
    """Runs rounds of check backs; one instance serves all groups of a process."""

    def __init__(self, queue: CheckQueue, asker: CheckCaller, facts: CheckObserver) -> None:
        self._queue = queue
        self._asker = asker
        self._facts = facts
        self._breakers = Breakers()

    async def run_once(self, producer_group_id: int) -> CheckRound:
        """Look once at what is due in a group. Raises DatabaseUnavailable; nothing is lost then."""
        due = await self._queue.claim(producer_group_id, SLICE_ROWS)
        if due is None:
            return CheckRound()
        hit("checker.after_slice")
        findings, asking = self._look_at(due)
        findings += await self._asker.ask_all(due, let_through(due, asking))
        change = self._breakers.change(due, findings)
        settlement = replace(settlement_of(due, findings, random.random), breaker=change)
        try:
            settled = await self._queue.settle(settlement)
        except CursorMoved:
            return CheckRound(superseded=True)
        hit("checker.after_commit")
        self._facts.settled(settlement, settled)
        return CheckRound(
            asked=len(settlement.attempts),
            decided=len(settled.resolution_seconds),
            put_back=len(settlement.put_backs),
            parked=len(settled.parked),
            dropped=sum(finding.look is None for finding in findings),
            more=(due.more or len(findings) < len(due.rows))
            and not (asking and waits(due, change)),
        )

    def _look_at(self, due: DueSlice) -> tuple[list[CheckResult], list[Asking]]:
        """Split the due rows into those that are done with and those to be asked."""
        done: list[CheckResult] = []
        asking: list[Asking] = []
        for row in due.rows:
            if row.drop is not None:
                self._facts.dropped(due.group, row)
                done.append(CheckResult(row=row))
                continue
            decision = look(row.waiting, due.group, due.now)
            if not isinstance(decision, Ask):
                done.append(CheckResult(row=row, look=decision))
            elif row.half is None:
                self._facts.skipped(due.group, row, "unreadable")
                done.append(CheckResult(row=row, look=decision))
            else:
                question = Question(
                    half=row.half,
                    round=row.round,
                    attempt=decision.attempt,
                    max_attempts=due.group.check_max,
                )
                asking.append(Asking(row=row, look=decision, question=question))
        return done, asking
