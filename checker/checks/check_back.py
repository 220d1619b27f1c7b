"""Check back: asks a producer group about its due halves; ends them, puts them back or parks them.

One round reads the group's due rows, asks the producer, and settles the results in one database
transaction. No transaction is open while a producer is asked. After a crash in between, the next
round asks about the same rows again, which is harmless: a check is a question.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from checker.checks.check_caller import CheckCaller
from checker.checks.check_observer import CheckObserver
from checker.checks.group_breakers import GroupBreakers, admit, stays_open
from checker.checks.settlement import decision_of, settlement_of
from outbox.checks.check_round import Drop, DueSlice, GroupDue, QueueRow, Settled, Settlement
from outbox.checks.policy import Decision
from outbox.errors import CursorMoved
from outbox.failpoints import hit

SLICE_ROWS: Final = 1000
"""The most due rows that a round reads; the rest stays due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRound:
    """The counts of one round of a group; ``more`` when due rows are left."""

    asked: int = 0
    decided: int = 0
    put_back: int = 0
    parked: int = 0
    dropped: int = 0
    more: bool = False


class CheckQueue(Protocol):
    """The halves that wait for a check: read by due time, settled in one commit per round."""

    async def due_groups(self) -> Sequence[GroupDue]:
        """Return the groups that have waiting halves; one index probe per delay class."""

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read up to ``limit`` due rows of a group and the group itself; locks nothing.

        Of a group that cannot be asked it reads due rows at their max age only. None when there is
        no row. Raises DatabaseUnavailable, and ConfigurationError for an unreadable secret.
        """

    async def settle(self, settlement: Settlement) -> Settled:
        """Write the results of a round, all or nothing.

        Raises CursorMoved when another checker has settled these rows, and DatabaseUnavailable;
        then nothing was written, and a later round asks about the same halves again.
        """


class CheckBack:
    """Runs rounds of check-backs; one instance serves all groups of a process."""

    def __init__(self, queue: CheckQueue, caller: CheckCaller, observer: CheckObserver) -> None:
        self._queue = queue
        self._caller = caller
        self._observer = observer
        self._breakers = GroupBreakers()

    async def run_once(self, producer_group_id: int) -> CheckRound:
        """Run one round of a group. Raises DatabaseUnavailable; nothing is lost then."""
        due = await self._queue.claim(producer_group_id, SLICE_ROWS)
        if due is None:
            return CheckRound()
        hit("checker.after_slice")
        finished, to_ask = self._split(due)
        asked = await self._caller.ask_all(due, admit(due, to_ask))
        wait = self._breakers.wait_after(due, asked)
        finished += asked
        settlement = replace(settlement_of(due, finished, random.random), breaker_wait_seconds=wait)
        try:
            settled = await self._queue.settle(settlement)
        except CursorMoved:
            return CheckRound()
        hit("checker.after_commit")
        self._observer.settled(settlement, settled)
        return CheckRound(
            asked=len(settlement.checks),
            decided=len(settled.resolution_seconds),
            put_back=len(settlement.put_backs),
            parked=len(settled.parked),
            dropped=sum(row.drop is not None for row in finished),
            more=(due.more or len(finished) < len(due.rows))
            and not (to_ask and stays_open(due, wait)),
        )

    def _split(self, due: DueSlice) -> tuple[list[QueueRow], list[QueueRow]]:
        """Split the due rows into those that are finished and those to ask about."""
        finished: list[QueueRow] = []
        to_ask: list[QueueRow] = []
        for row in due.rows:
            is_asked = decision_of(due, row) is Decision.ASK
            if is_asked and row.half is not None:
                to_ask.append(row)
                continue
            if is_asked:
                self._observer.skipped(due.group, row, "unreadable")
            elif row.drop is Drop.UNKNOWN:
                self._observer.skipped(due.group, row, Drop.UNKNOWN.value)
            finished.append(row)
        return finished, to_ask
