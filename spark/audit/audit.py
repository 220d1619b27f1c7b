"""One audit of both stores: its steps in their order.

The order is part of the proof: the log is captured first, the snapshot of the database is taken
last, and both are read only up to this cut. An audit writes the stage, the report and the tables of
the reconciliation, nothing else. A run that fails anywhere has changed no state. Spark is not
started where the new rows are as they must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark.audit import steps
from spark.audit.even_run import even_report
from spark.audit.hand_over import checkpoint, leftovers
from spark.audit.steps import Captured
from spark.report.report import Report
from spark.report.summary import summarize
from spark.run_context import Options, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


@dataclass(frozen=True, slots=True)
class Audit:
    """Judges everything up to one consistent cut."""

    context: RunContext
    options: Options

    def run(self) -> Report:
        """Return the report; the caller stores it.

        Raises KafkaUnavailable, DatabaseUnavailable, SnapshotMismatch.
        """
        context, options = self.context, self.options
        captured = steps.capture(context, options)
        with context.source.snapshot() as snapshot:
            return even_report(captured, snapshot) or self._judged(captured, snapshot)

    def _judged(self, captured: Captured, snapshot: PostgresSnapshot) -> Report:
        """Return the report of a run that Spark judges."""
        sources = self.context.sources()
        with steps.staged(captured, sources.spark_session) as staged:
            run, found = steps.read(staged, snapshot, sources)
            steps.diagnose(run, found, steps.judgement_of(run))
            aggregates = steps.check(run, found.mismatch)
            left = leftovers(run, aggregates.counts["ahead"])
            versions = {"spark": sources.spark_session.version}
            return summarize(run, aggregates, checkpoint(run, left, aggregates.anchors), versions)
