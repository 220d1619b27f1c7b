"""What the reconciliation needs from outside: the brokers, the audited database and its own tables.

The methods of a run are called by one thread, so they are plain ``def``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from outbox.messages.message_id import HalfId
from outbox.reconciliation.checkpoint import StoredCheckpoint
from outbox.reconciliation.finding import (
    FindingChanges,
    FindingFilter,
    FindingOutcome,
    FindingTotals,
    OpenFindingCount,
    StoredFinding,
    TrackedFinding,
)
from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts
from outbox.reconciliation.run import (
    ExpiredEvidence,
    FinishedRun,
    MeasuredRun,
    ReportFormat,
    RerunResult,
    RunPosition,
    StoredRun,
)
from outbox.reconciliation.snapshot import (
    EVERY_XID,
    HeldRecord,
    JdbcAddress,
    KnownHalf,
    RecordedPlace,
    RelayCut,
    SnapshotIdentity,
    UndecidedCounts,
)
from outbox.reconciliation.stalled import Stalled


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


class KeptLeaves(Protocol):
    """Which leaves the tables of a snapshot still have."""

    def retired_below(self) -> HalfId:
        """Return the lowest half id whose leaf is still kept."""

    def retired_leaves(self) -> frozenset[int]:
        """Return the leaves above that which were removed before a lower one."""

    def kept_below(self, half_id: HalfId) -> frozenset[HalfId]:
        """Return the half messages below an id that are stored, though their leaf is removed."""


class SourceSnapshot(KeptLeaves, Protocol):
    """The outbox's tables at one instant; open while Spark reads them with the same snapshot."""

    identity: SnapshotIdentity

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

    def stalled(self) -> Stalled:
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


class StoredFindings(Protocol):
    """Reads what the stored runs have found."""

    def changes(
        self, finding_ids: Sequence[str], complete: bool, expired_evidence: ExpiredEvidence
    ) -> FindingChanges:
        """Return what saving these open findings would change."""

    def remaining(
        self, finding_ids: Sequence[str], expired_evidence: ExpiredEvidence
    ) -> Sequence[StoredFinding]:
        """Return the open or accepted findings besides these that stay open though unseen.

        Either their topic is excluded from the run. Or their message was missing, and is older than
        the manifests. Or they are faults that an earlier run has seen in the log: their record has
        expired or their class is permanent, and their message, if they have one, is still stored.
        Those stay open until an operator settles them.
        """

    def open_below(self, half_id: HalfId) -> Sequence[HalfId]:
        """Return the messages below ``half_id`` that have an open or accepted finding.

        Findings of the kind stuck are left out: a message that is retired has been decided.
        """

    def missing(self, finding_ids: Sequence[str]) -> Sequence[HalfId]:
        """Return the messages with another open or accepted finding of the kind missing."""

    def accepted(self) -> frozenset[str]:
        """Return the ids of the findings that an operator accepts for now; they do not count."""

    def statuses(self, run_id: str) -> Sequence[FindingOutcome] | None:
        """Return the current status of each finding that a run saw; None if there is no run."""


class RunStore(StoredFindings, Protocol):
    """Keeps runs, findings and reports; writes to no other table."""

    def run_lock(self) -> AbstractContextManager[None]:
        """Prevent other runs until the block ends or this process dies.

        Raises RunUnderWay when another run has the lock, DatabaseUnavailable.
        """

    def checkpoint(self) -> StoredCheckpoint | None:
        """Return where the last run ended; None before the first. Raises DatabaseUnavailable."""

    def past(self, run_id: str, limit: int) -> Sequence[FinishedRun]:
        """Return the newest runs except this one, oldest first."""

    def log_state(self) -> Mapping[str, Any] | None:
        """Return what the newest run stored about the log, as JSON; None before the first."""

    def save(self, run: StoredRun) -> None:
        """Store a run and its findings in one transaction; saving it again changes nothing.

        Raises RunOvertaken when another run has stored its cut meanwhile; then nothing is stored.
        """

    def save_rerun(self, result: RerunResult) -> None:
        """Store in one transaction the new status of the given findings, and nothing else.

        Raises RunOvertaken when a run has stored its cut meanwhile; then nothing is stored.
        """


class ReconciliationRuns(Protocol):
    """Finished reconciliations as operators read them. Methods raise DatabaseUnavailable."""

    async def page(self, limit: int, before: RunPosition | None) -> Sequence[FinishedRun]:
        """Return runs, newest first, older than ``before``."""

    async def get(self, run_id: str) -> FinishedRun | None:
        """Return one run, or None."""

    async def report(self, run_id: str, form: ReportFormat) -> str | None:
        """Return the text of a run's report, or None when it is not kept."""

    async def findings(
        self, run_id: str, wanted: FindingFilter, limit: int, after: str
    ) -> Sequence[TrackedFinding]:
        """Return a run's findings above info with their current status, by id, after ``after``."""

    async def totals(self, run_id: str) -> FindingTotals:
        """Count a run's findings above info by kind, topic and hour."""

    async def last(self) -> MeasuredRun | None:
        """Return the newest run with its measurements, or None before the first."""

    async def open_findings(self) -> Sequence[OpenFindingCount]:
        """Count the open findings."""
