"""Looking again at what an earlier run found: what it has become is stored, and nothing else.

It judges as the next run would, in a new cut, and leaves all that is new to that run.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from outbox.reconciliation.ports import RunStore
from outbox.reconciliation.stored_run import FindingStatus, Look
from spark.audit import run_once
from spark.columns.staging import PREFIX
from spark.findings.finding_class import FindingClass, Graded, Severity
from spark.findings.verdict import EXIT_CLEAN, EXIT_INCONCLUSIVE, Tolerance, exit_code
from spark.report.report import Report, spaced, stored_run
from spark.run_context import Options, RunContext
from spark.spark_errors import RunNotFound

OPEN = "open"
UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """What the findings of ``of`` that were open have become at a new cut."""

    of: str
    report: Report
    """Of the run that was judged for it; nobody keeps that run."""
    findings: Sequence[FindingStatus]

    @property
    def open(self) -> Mapping[Graded, int]:
        """How many of them are still open, by class and severity."""
        return dict(Counter(map(_graded, (f for f in self.findings if f.status == OPEN))))

    @property
    def new(self) -> int:
        """How many were seen that no run has told as open, or that are too many to be known."""
        total = sum(self.report.class_counts.values())
        return self.report.changes.new + total - len(self.report.findings)

    def exit_code(self, tolerance: Tolerance) -> int:
        """Return 7 for what is still open and not tolerated, 8 if nobody can tell, else 0."""
        code = exit_code(self.open, tolerance)
        return code if code != EXIT_CLEAN or self._told else EXIT_INCONCLUSIVE

    @property
    def _told(self) -> bool:
        """All was read, and all that was open could be judged again."""
        return self.report.complete and not any(f.status == UNVERIFIABLE for f in self.findings)

    @property
    def _cut_at(self) -> str:
        return self.report.plan.cut_at.isoformat()

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "rerun_of": self.of,
            "cut_at": self._cut_at,
            "complete": self.report.complete,
            "open": sum(self.open.values()),
            "findings": [
                {"finding_id": f.finding_id, "class": f.finding_class, "status": f.status}
                for f in self.findings
            ],
            "new": self.new,
        }

    def lines(self) -> str:
        """Return what a person reads on a terminal."""
        told = "".join(
            f"{f.status:<12} {f.finding_class:<18} {f.finding_id}\n" for f in self.findings
        )
        still, of = spaced(sum(self.open.values())), spaced(len(self.findings))
        told += f"{still} of {of} findings of {self.of} are open at the cut of {self._cut_at}\n"
        if not self.new:
            return told
        return f"{told}{spaced(self.new)} others were seen: outbox reconcile run tells them\n"


def rerun_once(parts: RunContext, options: Options, run_id: str) -> Rerun:
    """Judge in a new cut, and store what the open findings of that run have become.

    Raises RunNotFound, RunOvertaken, and what a run raises; then nothing is stored.
    """
    before = open_findings(parts.run_store, run_id)
    with _no_report(options.report_dir) as folder:
        report = run_once(parts, replace(options, report_dir=folder))
    parts.run_store.settle(look_of(report, [each.finding_id for each in before]))
    after = {each.finding_id: each for each in parts.run_store.statuses(run_id) or ()}
    return Rerun(of=run_id, report=report, findings=became(before, after))


def open_findings(run_store: RunStore, run_id: str) -> tuple[FindingStatus, ...]:
    """Return the findings of a run that are open now. Raises RunNotFound."""
    known = run_store.statuses(run_id)
    if known is None:
        raise RunNotFound(f"no run {run_id}: see `outbox reconcile list`")
    return tuple(each for each in known if each.status == OPEN)


def look_of(report: Report, finding_ids: Sequence[str]) -> Look:
    """Return what a run that is not stored says of these findings."""
    run = stored_run(report, {})
    return Look(
        after=run.step.after if run.step else None,
        finding_ids=finding_ids,
        seen=run.findings,
        complete=run.complete,
        gone=run.gone,
    )


def became(
    before: Sequence[FindingStatus], after: Mapping[str, FindingStatus]
) -> tuple[FindingStatus, ...]:
    """Return what these findings have become."""
    return tuple(after.get(f.finding_id, f) for f in before)


@contextmanager
def _no_report(parent: Path) -> Iterator[Path]:
    """Yield where the Parquet of a run goes that nobody keeps; what is left is swept as a stage."""
    folder = parent / f"{PREFIX}{uuid4().hex}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _graded(found: FindingStatus) -> Graded:
    return Graded(FindingClass(found.finding_class), Severity[found.severity.upper()])
