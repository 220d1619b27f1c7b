"""The values that the steps of an audit pass on; each contains the value of the step before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import StoredCheckpoint
from spark.checks import match_checks
from spark.columns.frames import Frames
from spark.compare import bucket_checksums, open_items
from spark.compare.facts import Judgement
from spark.cut.cut_plan import LogCut, Plan
from spark.cut.reader import PlannedRead
from spark.findings.finding import Finding
from spark.findings.ledger import Ledger
from spark.report.aggregates import Aggregates
from spark.run_context import Options, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The cut of the log, and where the last run ended."""

    context: RunContext
    options: Options
    started_at: datetime
    stored: StoredCheckpoint | None
    log: LogCut

    @property
    def earlier_findings(self) -> tuple[Finding, ...]:
        """The findings that earlier runs left open and that later runs do not see."""
        return tuple(open_items.carried_findings(self.stored.carried)) if self.stored else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Both sides up to the cut, as frames."""

    captured: Captured
    snapshot: PostgresSnapshot
    planned: PlannedRead
    frames: Frames

    @property
    def plan(self) -> Plan:
        """What was read, frozen."""
        return self.planned.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What differs between the two sides."""

    read: Read
    mismatch: bucket_checksums.Mismatch | None
    """The buckets that differ; None where everything was joined."""
    unsettled: DataFrame
    open: int
    """Number of its rows: half ids that are not settled."""
    suspects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """The findings about messages, shards and partitions."""

    compared: Compared
    ledger: Ledger
    judgement: Judgement
    expired: Sequence[HalfId]
    """Messages that nothing can settle any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The same with the findings of the further checks."""

    diagnosed: Diagnosed
    checks: match_checks.MatchChecks
    aggregates: Aggregates
