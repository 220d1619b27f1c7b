"""A run: its adapters, its options, and what it has read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from outbox.clock import Clock
from outbox.reconciliation.run import StoredCheckpoint
from spark.columns.frames import Frames
from spark.cut.checkpoint import PlannedRead
from spark.cut.cut_plan import Plan
from spark.cut.sources import Sources
from spark.findings.finding import Finding
from spark.findings.ledger import Ledger
from spark.findings.topic_rules import TopicRules
from spark.progress import Progress

if TYPE_CHECKING:
    from outbox.kafka.log_reader import KafkaLogReader
    from outbox.postgres.reconciliation.run_store import PostgresRunStore
    from outbox.postgres.reconciliation.source import PostgresSnapshot, PostgresSource


SMALL_ROWS: Final = 20_000
"""Up to this number of new records, and of new commits, a run is first tried without Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The adapters of a run; the wiring provides every concrete one."""

    source: PostgresSource
    log_reader: KafkaLogReader
    run_store: PostgresRunStore
    sources: Callable[[], Sources]
    """Starts Spark when it is first called."""
    clock: Clock
    progress: Progress
    pause: Callable[[float], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a run."""

    progress_topic: str
    report_dir: Path
    stage_uri: str
    grace_seconds: int
    exclude_topics: frozenset[str] = frozenset()
    topic_rules: TopicRules = field(default_factory=dict)
    accept_topics: frozenset[str] = frozenset()
    """Topics that may have been recreated: they are judged from this run on."""
    full: bool = False
    """Read everything, even what an earlier run has read."""
    small_rows: int = SMALL_ROWS
    """Up to this number of rows a run is first tried without Spark; 0 never tries."""
    show_keys: bool = False

    def folder_of(self, run_id: str) -> Path:
        """Return the folder of a run's report."""
        return self.report_dir / f"run_id={run_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run once its plan is frozen: the cut, and the ledger of its findings."""

    context: RunContext
    options: Options
    started_at: datetime
    stored: StoredCheckpoint | None
    """Where the run before has ended."""
    earlier: tuple[Finding, ...]
    """The findings that earlier runs left open."""
    snapshot: PostgresSnapshot
    planned: PlannedRead
    ledger: Ledger

    @property
    def plan(self) -> Plan:
        """What was read, frozen."""
        return self.planned.plan

    @property
    def continued(self) -> bool:
        """It has read only what is new since the run before."""
        return self.planned.previous is not None

    @property
    def unseen(self) -> tuple[Finding, ...]:
        """The earlier findings, if the run does not read their evidence again."""
        return self.earlier if self.continued else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRun(Run):
    """A run that Spark judges, with what was read."""

    sources: Sources
    frames: Frames
