"""One audit of both stores: its steps in their order, each with one frozen value in and one out.

An audit writes the stage, the report and the tables of the reconciliation, nothing else. A run that
fails anywhere has changed no state.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark.audit import hand_over, steps
from spark.report.report import Report
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
        captured = steps.capture(self.context, self.options)
        with self.context.source.snapshot() as snapshot, steps.sized(captured) as size:
            read = steps.read(captured, snapshot, size)
            compared = steps.compare(read)
            diagnosed, matched = steps.diagnose_and_match(compared)
            checked = steps.check(diagnosed, matched)
            outcome = hand_over.checkpoint(checked)
            return steps.report(outcome)
