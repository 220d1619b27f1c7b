"""One audit of both stores: its steps in their order.

The order is part of the proof: the log is captured first, the snapshot of the database is taken
last, and both are read only up to this cut. An audit writes the stage, the report and the tables of
the reconciliation, nothing else. A run that fails anywhere has changed no state.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark.audit import steps
from spark.audit.hand_over import checkpoint
from spark.compare.bucket_checksums import differences
from spark.report.report import Report
from spark.report.summary import summarize
from spark.run_context import Options, RunContext


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
        log_cut = steps.capture(context, options)
        with (
            context.source.snapshot() as snapshot,
            steps.staged(log_cut) as captured,
            steps.sized(captured) as size,
        ):
            run = steps.read(captured, snapshot, size)
            with context.progress.stage("compare") as stage:
                found = differences(run.frames, options.mode, options.bucket_messages)
                stage.rows = found.suspects
            judgement = steps.judgement_of(run)
            expired, checks = steps.diagnose_and_match(run, found, judgement)
            aggregates = steps.check(run, checks)
            left = checkpoint(run, found, judgement, expired)
            return summarize(run, found.mismatch, aggregates, left)
