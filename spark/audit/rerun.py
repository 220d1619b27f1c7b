"""The rerun of an earlier run: stores the present status of that run's open findings, nothing else.

It judges as the next run would, in a new cut, and leaves all new findings to that run.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outbox.reconciliation.finding import StoredFinding
from spark.audit.audit import Audit
from spark.findings.finding_class import Cause, GradedCause, Severity
from spark.findings.verdict import EXIT_CLEAN, EXIT_INCONCLUSIVE, Tolerance, exit_code
from spark.jvm.spark_errors import RunNotFound
from spark.report.report import Report, format_count
from spark.report.store_run import stored_run
from spark.run_context import Options, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.run_store import PostgresRunStore

OPEN = "open"
UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """The status at a new cut of the findings of ``of`` that were open."""

    of: str
    report: Report
    """The report of the new run, which is not stored."""
    findings: Sequence[StoredFinding]

    @property
    def open(self) -> Mapping[GradedCause, int]:
        """The number of those still open, by cause and severity."""
        return dict(Counter(map(_graded, (f for f in self.findings if f.status == OPEN))))

    @property
    def new(self) -> int:
        """The number of other findings: not open in any run, or too many to be kept."""
        total = sum(self.report.cause_counts.values())
        return self.report.changes.new + total - len(self.report.findings)

    def exit_code(self, tolerance: Tolerance) -> int:
        """Return 7 for open findings that are not tolerated, 8 if inconclusive, else 0."""
        code = exit_code(self.open, tolerance)
        return code if code != EXIT_CLEAN or self._conclusive else EXIT_INCONCLUSIVE

    @property
    def _conclusive(self) -> bool:
        """Everything was read, and every open finding could be judged again."""
        return self.report.complete and not any(f.status == UNVERIFIABLE for f in self.findings)

    @property
    def _cut_at(self) -> str:
        return self.report.plan.snapshot.taken_at.isoformat()

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "rerun_of": self.of,
            "cut_at": self._cut_at,
            "complete": self.report.complete,
            "open": sum(self.open.values()),
            "findings": [
                {
                    "finding_id": f.finding_id,
                    "class": f.finding_class,
                    "detail": f.detail,
                    "status": f.status,
                }
                for f in self.findings
            ],
            "new": self.new,
        }

    def lines(self) -> str:
        """Return the text for a terminal."""
        text = "".join(f"{f.status:<12} {f.cause:<29} {f.finding_id}\n" for f in self.findings)
        still, of = format_count(sum(self.open.values())), format_count(len(self.findings))
        text += f"{still} of {of} findings of {self.of} are open at the cut of {self._cut_at}\n"
        if not self.new:
            return text
        return (
            f"{text}{format_count(self.new)} others were seen: outbox reconcile run reports them\n"
        )


def rerun_once(context: RunContext, options: Options, run_id: str) -> Rerun:
    """Judge in a new cut, and store the status of that run's open findings.

    Raises RunNotFound, RunOvertaken, and what a run raises; nothing is stored then.
    """
    before = open_findings(context.run_store, run_id)
    with _no_report(options) as folder:
        report = Audit(context, replace(options, report_dir=folder)).run()
    context.run_store.save_rerun(stored_run(report, {}), [each.finding_id for each in before])
    after = {each.finding_id: each for each in context.run_store.statuses(run_id) or ()}
    return Rerun(of=run_id, report=report, findings=later_statuses(before, after))


def open_findings(run_store: PostgresRunStore, run_id: str) -> tuple[StoredFinding, ...]:
    """Return the findings of a run that are open now. Raises RunNotFound."""
    known = run_store.statuses(run_id)
    if known is None:
        raise RunNotFound(f"no run {run_id}: see `outbox reconcile list`")
    return tuple(each for each in known if each.status == OPEN)


def later_statuses(
    before: Sequence[StoredFinding], after: Mapping[str, StoredFinding]
) -> tuple[StoredFinding, ...]:
    """Return the newest status of these findings."""
    return tuple(after.get(f.finding_id, f) for f in before)


@contextmanager
def _no_report(options: Options) -> Iterator[Path]:
    """Yield a folder for the Parquet of a run that is not kept; a killed rerun may have left it."""
    installation = options.stage_uri.rpartition("/")[2]
    folder = options.report_dir / f".rerun-{installation}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _graded(found: StoredFinding) -> GradedCause:
    return GradedCause(Cause(found.cause), Severity[found.severity.upper()])
