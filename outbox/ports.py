"""What the programs ask of the outside world, as narrow as each caller needs it.

A port has the colour of its one kind of caller: ``async def`` for the API and the check-back side,
``def`` for the relay's threads. Every twin passes the same contract suite as the real thing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from outbox.message import End, EndOutcome, Message, PrepareOutcome
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
