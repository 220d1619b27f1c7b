"""What an audit reads: the brokers and the audited database.

The methods of a run are called by one thread, so they are plain ``def``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts
from outbox.reconciliation.snapshot import (
    EVERY_XID,
    HeldRecord,
    JdbcAddress,
    KnownHalf,
    RecordedPlace,
    RelayCut,
    SnapshotIdentity,
    Stalled,
    UndecidedCounts,
)


class LogReader(Protocol):
    """Asks the brokers directly; used by one thread, and each call takes a bounded time."""

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return every partition of those topics that exist. Raises KafkaUnavailable."""

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return one offset per partition; a partition that fails alone is in ``errors``.

        Raises KafkaUnavailable when no broker answers.
        """

    def offsets_since(self, partitions: Collection[Partition], at: datetime) -> Offsets:
        """Return per partition the first offset of a record of that time or later.

        A partition without such a record is in neither part of the answer. Raises KafkaUnavailable
        when no broker answers, or none knows one of the partitions.
        """

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return the description of each topic, or why there is none; a missing topic is left out.

        Raises KafkaUnavailable.
        """

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Return the first committed record at or after each offset, None if there is none.

        A partition whose offset has expired is left out. Raises KafkaUnavailable when one does not
        answer in time, KafkaForbidden when this principal may not read it.
        """

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Read single committed records by offset; records that no longer exist are left out.

        Raises KafkaForbidden for a topic that this principal may not read.
        """


class SourceSnapshot(Protocol):
    """The outbox's tables at one instant; open while Spark reads them with the same snapshot."""

    identity: SnapshotIdentity

    def retired_below(self) -> HalfId:
        """Return the lowest half id whose leaf is still kept."""

    def retired_leaves(self) -> frozenset[int]:
        """Return the leaves above that which were removed before a lower one."""

    def kept_below(self, half_id: HalfId) -> frozenset[HalfId]:
        """Return the half messages below an id that are stored, though their leaf is removed."""

    def undecided(self, *, whole: bool = True) -> UndecidedCounts:
        """Count the half messages without a decision.

        ``whole`` reads every half that is kept. Otherwise the count relies on the cursors of the
        checks.
        """

    def unlogged(
        self, since: datetime | None, half_ids: Sequence[HalfId], before: int = EVERY_XID
    ) -> Sequence[HalfId]:
        """Return at most 1 000 messages that were decided COMMIT and are not in the commit log.

        They are sought among those that were prepared after the newest commit before ``since`` and
        below the transaction id ``before``, or among all that are kept; and among the given ones.
        """

    def stalled(self) -> Sequence[Stalled]:
        """Return what makes no progress: undecided halves, silent checks, a held-up xmin."""

    def halves(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, KnownHalf]:
        """Return those of at most 10 000 half messages that are known."""

    def held_records(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, HeldRecord]:
        """Return those of the messages that are or were held records."""

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[UUID]:
        """Return the message ids that Kafka had and that this database had lost."""

    def recorded_places(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, RecordedPlace]:
        """Return the partition and offset of each record, as the relay recorded them."""


class ReconciliationSource(Protocol):
    """The database that a run audits."""

    jdbc: JdbcAddress

    def topics(self) -> Sequence[str]:
        """Return every topic that a message was ever prepared for. Raises DatabaseUnavailable."""

    def listed(self) -> Sequence[RelayCut]:
        """Return the position and the last manifest of each shard that has published.

        Raises DatabaseUnavailable.
        """

    def snapshot(self) -> AbstractContextManager[SourceSnapshot]:
        """Export a snapshot and keep it until the block ends. Raises DatabaseUnavailable."""
