"""What the programs ask of the outside world, as narrow as each caller needs it.

A port has the colour of its one kind of caller: ``async def`` for the API and the check-back side,
``def`` for the relay's threads. Every twin passes the same contract suite as the real thing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from outbox.check import Answer, DueSlice, GroupDue, Question, Settled, Settlement, SweepRound
from outbox.message import End, EndOutcome, Message, PrepareOutcome, ProducerGroup
from outbox.message_id import HalfId
from outbox.reconciliation import (
    Changes,
    Hold,
    JdbcAddress,
    KnownHalf,
    LogEnd,
    LogRecord,
    Offsets,
    Partition,
    RecordedPlace,
    SnapshotIdentity,
    StoredRun,
    Undecided,
)


class HalfStore(Protocol):
    """Stores half messages and their decisions; one call is one flush and one database commit."""

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages durably and answer in the order asked.

        A row that the database refuses fails alone (Unstorable). At most
        ``ROWS_PER_TRANSACTION`` messages a call. Raises DatabaseUnavailable when nothing is known
        to be stored.
        """

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages and answer in the order asked; the first decision wins (G2).

        UNKNOWN writes nothing. Raises DatabaseUnavailable; the same ends may be repeated.
        """


class LogFacts(Protocol):
    """What the reconciliation asks the brokers directly; one thread, bounded time."""

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return every partition of those topics that exist. Raises KafkaUnavailable."""

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return one offset a partition; what fails alone is in ``errors``.

        Raises KafkaUnavailable when no broker answers.
        """

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Read single committed records by offset; those that are gone are left out."""


class SourceSnapshot(Protocol):
    """The outbox's tables at one instant; open while Spark reads them with the same snapshot."""

    identity: SnapshotIdentity

    def retired_below(self) -> HalfId:
        """Return the lowest half id whose leaf is still kept."""

    def undecided(self) -> Undecided:
        """Count the half messages without a decision."""

    def halves(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, KnownHalf]:
        """Return the known ones of at most 10 000 half messages."""

    def holds(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, Hold]:
        """Return what is known of held records."""

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[HalfId]:
        """Return the ids that Kafka had and this database had forgotten."""

    def places(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, RecordedPlace]:
        """Return where the relay recorded that the records are."""


class ReconciliationSource(Protocol):
    """The database that a run audits."""

    jdbc: JdbcAddress

    def topics(self) -> Sequence[str]:
        """Return every topic that a message was ever prepared for. Raises DatabaseUnavailable."""

    def snapshot(self) -> AbstractContextManager[SourceSnapshot]:
        """Export a snapshot and keep it until the block is left. Raises DatabaseUnavailable."""


class RunStore(Protocol):
    """Keeps runs, findings and reports; writes to no other table."""

    def changes(self, finding_ids: Sequence[str], complete: bool) -> Changes:
        """Tell what saving these open findings would change."""

    def save(self, run: StoredRun) -> None:
        """Store a run and its findings in one transaction; saving it again changes nothing."""


class Sweep(Protocol):
    """Finds the undecided half messages once they are a second old."""

    async def sweep(self, limit: int) -> SweepRound:
        """Queue the undecided among the next ``limit`` halves and pass them all, in one commit.

        Raises CursorMoved when another sweep was faster, and DatabaseUnavailable.
        """


class CheckQueue(Protocol):
    """The halves that wait for a check, read in due order, settled in one commit a round."""

    async def due_groups(self) -> Sequence[GroupDue]:
        """Return the groups that have waiting halves; one index probe a delay class."""

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read up to ``limit`` due rows of a group and the group itself; locks nothing.

        None when the group or its due rows are gone. Raises DatabaseUnavailable.
        """

    async def settle(self, settlement: Settlement) -> Settled:
        """Write what a round has found out, all or nothing.

        Raises CursorMoved when another checker has settled these rows, and DatabaseUnavailable;
        then nothing was written and the same halves are asked again.
        """


class CheckEndpoint(Protocol):
    """Asks a producer group what became of its local transactions."""

    async def ask(self, group: ProducerGroup, questions: Sequence[Question]) -> Sequence[Answer]:
        """Make one call and answer each question in order; never raises for what came back.

        More than one question needs a group with the batch form. Whatever is not one valid
        verdict for the id that was asked is an Answer without a verdict.
        """


class Turns(Protocol):
    """Takes turns with other processes; for liveness only, no rule relies on it."""

    def turn(self, kind: str, number: int = 0) -> AbstractAsyncContextManager[bool]:
        """Hold a turn for the block; False when another process holds it."""


class Heartbeats(Protocol):
    """Tells others that a chore is alive."""

    async def beat(self, chore: str) -> None:
        """Note, by the database's clock, that the chore has just made progress."""


class Leaves(Protocol):
    """The partitions that rows go to."""

    async def create_ahead(self, count: int) -> int:
        """Make sure that the next ``count`` leaves exist; return how many were missing."""

    async def default_rows(self) -> Mapping[str, bool]:
        """Tell for each partitioned table whether rows had to go to its default leaf."""
