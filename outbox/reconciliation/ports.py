"""What a reconciliation asks of the outside world: the brokers, the audited tables, its own.

One thread asks, so all of it is ``def``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from outbox.messages.message_id import HalfId
from outbox.reconciliation.finished_runs import (
    FindingFilter,
    KnownFinding,
    LastRun,
    OpenFindings,
    ReportFormat,
    RunPlace,
    RunSummary,
)
from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts
from outbox.reconciliation.snapshot import (
    Hold,
    JdbcAddress,
    KnownHalf,
    RecordedPlace,
    RelayCut,
    SnapshotIdentity,
    Undecided,
)
from outbox.reconciliation.stalled import Stalled
from outbox.reconciliation.stored_run import (
    Chain,
    Changes,
    FindingStatus,
    Gone,
    Look,
    PastRun,
    RunBefore,
    StoredRun,
)


class LogReader(Protocol):
    """What the reconciliation asks the brokers directly; one thread, bounded time."""

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return every partition of those topics that exist. Raises KafkaUnavailable."""

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return one offset a partition; what fails alone is in ``errors``.

        Raises KafkaUnavailable when no broker answers.
        """

    def offsets_since(self, partitions: Collection[Partition], at: datetime) -> Offsets:
        """Return the first offset a partition of a record of that time or later.

        A partition without any is in neither part of the answer. Raises KafkaUnavailable when no
        broker answers, or knows one of the partitions.
        """

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return what each topic is, or why that cannot be told; one that is not there is left out.

        Raises KafkaUnavailable.
        """

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Return the first committed record at or behind each offset, None where there is none.

        A partition that does not answer in time is left out.
        """

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Read single committed records by offset; those that are gone are left out."""


class SourceSnapshot(Protocol):
    """The outbox's tables at one instant; open while Spark reads them with the same snapshot."""

    identity: SnapshotIdentity

    def retired_below(self) -> HalfId:
        """Return the lowest half id whose leaf is still kept."""

    def undecided(self, *, whole: bool = True) -> Undecided:
        """Count the half messages without a decision.

        As a whole it looks at every half that is kept; else it believes the cursors of the checks.
        """

    def stuck(self) -> Stalled:
        """Return what does not move on: undecided halves, silent checks, a held-up xmin."""

    def halves(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, KnownHalf]:
        """Return the known ones of at most 10 000 half messages."""

    def holds(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, Hold]:
        """Return what is known of held records."""

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[UUID]:
        """Return the message ids that Kafka had and this database had forgotten."""

    def places(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, RecordedPlace]:
        """Return where the relay recorded that the records are."""


class ReconciliationSource(Protocol):
    """The database that a run audits."""

    jdbc: JdbcAddress

    def topics(self) -> Sequence[str]:
        """Return every topic that a message was ever prepared for. Raises DatabaseUnavailable."""

    def unlisted(self) -> Sequence[RelayCut]:
        """Return how far each shard has come whose newest batches no manifest lists.

        That is the lane at_least_once. Raises DatabaseUnavailable.
        """

    def snapshot(self) -> AbstractContextManager[SourceSnapshot]:
        """Export a snapshot and keep it until the block is left. Raises DatabaseUnavailable."""


class RunStore(Protocol):
    """Keeps runs, findings and reports; writes to no other table."""

    def hold(self) -> AbstractContextManager[None]:
        """Keep other runs from beginning until the block is left or this process has died.

        Raises RunUnderWay when another run holds the chain, DatabaseUnavailable.
        """

    def chain(self) -> Chain | None:
        """Return where the last run ended; None before the first. Raises DatabaseUnavailable."""

    def changes(self, finding_ids: Sequence[str], complete: bool, gone: Gone) -> Changes:
        """Tell what saving these open findings would change."""

    def open_below(self, half_id: HalfId) -> Sequence[HalfId]:
        """Return the messages below ``half_id`` of which a finding is open or accepted.

        Those that are stuck apart: what is retired has been decided.
        """

    def accepted(self) -> frozenset[str]:
        """Return the ids of the findings that an operator accepts for now: they do not count."""

    def statuses(self, run_id: str) -> Sequence[FindingStatus] | None:
        """Return what has become of the findings that a run saw; None without such a run."""

    def past(self, run_id: str, limit: int) -> Sequence[PastRun]:
        """Return the newest runs but this one, oldest first."""

    def log_state(self) -> Mapping[str, Any] | None:
        """Return what the newest run left behind of the log, as JSON; None before the first."""

    def before(self, run_id: str, finding_ids: Sequence[str]) -> RunBefore | None:
        """Return the newest other run, and which of these findings are open; None without one."""

    def save(self, run: StoredRun) -> None:
        """Store a run and its findings in one transaction; saving it again changes nothing.

        Raises RunOvertaken when another run has moved the cut meanwhile; then nothing is stored.
        """

    def settle(self, look: Look) -> None:
        """Store in one transaction what the findings asked for have become, and nothing else.

        Raises RunOvertaken when a run has moved the cut meanwhile; then nothing is stored.
        """


class ReconciliationRuns(Protocol):
    """Finished reconciliations as operators read them. Methods raise DatabaseUnavailable."""

    async def page(self, limit: int, before: RunPlace | None) -> Sequence[RunSummary]:
        """Return runs, newest first, older than ``before``."""

    async def get(self, run_id: str) -> RunSummary | None:
        """Return one run, or None."""

    async def report(self, run_id: str, form: ReportFormat) -> str | None:
        """Return the text of a run's report, or None when it is not kept."""

    async def findings(
        self, run_id: str, wanted: FindingFilter, limit: int, after: str
    ) -> Sequence[KnownFinding]:
        """Return a run's findings above info as they stand now, by id, beyond ``after``."""

    async def last(self) -> LastRun | None:
        """Return what is measured of the newest run, or None before the first."""

    async def open_findings(self) -> Sequence[OpenFindings]:
        """Count the open findings."""
