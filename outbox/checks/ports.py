"""The ports of checks: the sweep, the queue, the check endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from outbox.checks.answer import Answer
from outbox.checks.check_round import DueSlice, GroupDue, QueueRow, Settled, Settlement, SweepRound
from outbox.checks.producer_group import ProducerGroup


class Sweep(Protocol):
    """Finds the undecided half messages that are at least one second old."""

    async def sweep(self, limit: int) -> SweepRound:
        """Queue the undecided among the next ``limit`` halves and pass them all, in one commit.

        Raises CursorMoved when another sweep was faster, and DatabaseUnavailable.
        """


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


class CheckEndpoint(Protocol):
    """Asks a producer group for the results of its local transactions."""

    async def ask(
        self, group: ProducerGroup, rows: Sequence[QueueRow], now: datetime
    ) -> Sequence[Answer]:
        """Make one call and answer for each readable row in order; never raises for a response.

        ``now``, by the database's clock, is the time in the call's signature. More than one row
        needs a group with the batch form. A response without one valid verdict for the
        id that was asked is an Answer without a verdict.
        """
