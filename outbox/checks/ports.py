"""The ports of checks: the sweep, the queue, the groups, the check endpoint."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from outbox.access import Caller
from outbox.checks.answer import Answer
from outbox.checks.check_round import DueSlice, GroupDue, Settled, Settlement, SweepRound
from outbox.checks.group_change import GroupHealth, NewSecret, Precondition, StoredGroup
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import QueueRow


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


class ProducerGroups(Protocol):
    """Registered producer groups; every change is audited and raises the version."""

    async def page(
        self, names: Collection[str] | None, after: str, limit: int, *, tripped: bool = False
    ) -> Sequence[ProducerGroup]:
        """Return the groups after ``after``, by name; ``names`` None means all.

        ``tripped``: only those whose breaker is not closed.
        """

    async def get(self, name: str) -> ProducerGroup:
        """Return one group. Raises UnknownGroup."""

    async def with_secrets(self, name: str) -> tuple[ProducerGroup, datetime]:
        """Return one group with its signing secrets, and the database's time to sign with.

        Raises UnknownGroup, and DatabaseUnavailable.
        """

    async def health(self, name: str) -> GroupHealth:
        """Return the due checks and the age of the secret of a group. Raises UnknownGroup."""

    async def put(
        self, group: ProducerGroup, precondition: Precondition, caller: Caller
    ) -> StoredGroup:
        """Register or replace a group.

        Raises ScopeMissing when the caller may not make this change, and PreconditionRequired or
        PreconditionFailed when the group exists and would change, or when the version that the
        caller has read is of a group that was deleted.
        """

    async def delete(self, name: str, precondition: Precondition, key_id: str | None) -> None:
        """Delete a group. Raises UnknownGroup, PreconditionFailed, GroupInUse."""

    async def pause(
        self,
        name: str,
        reason: str,
        *,
        paused: bool,
        key_id: str | None,
        operator: str | None = None,
    ) -> ProducerGroup:
        """Pause or resume the checks of a group; ends always continue. Raises UnknownGroup."""

    async def rotate_secret(self, name: str, overlap_seconds: int, key_id: str | None) -> NewSecret:
        """Give the group a new signing secret; the old one stays valid for the overlap."""
