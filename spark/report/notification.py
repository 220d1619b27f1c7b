"""Whether an operator's endpoint is told of a run: another verdict, or worse is new. Pure.

A notice names counts and runs, never a key, a value or a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outbox.reconciliation.stored_run import RunBefore
from spark.findings.finding_class import Severity
from spark.findings.verdict import Verdict
from spark.report.report import Report

CHANGED: Final = "reconciliation.changed"


def critical_ids(report: Report) -> list[str]:
    """Return the ids of the critical findings of a run."""
    return [f.finding_id for f in report.findings if f.severity is Severity.CRITICAL]


def news_of(report: Report, before: RunBefore | None) -> Mapping[str, Any] | None:
    """Return what to tell of a run, or None when it says what the run before it said.

    Before the first run everything counts as clean.
    """
    verdict_before = before.verdict if before else Verdict.CLEAN.value
    known = before.open_before if before else frozenset()
    new_critical = sum(each not in known for each in critical_ids(report))
    if report.verdict.value == verdict_before and not new_critical:
        return None
    return {
        "run_id": report.run_id,
        "previous_run_id": before.run_id if before else None,
        "verdict": report.verdict.value,
        "previous_verdict": before.verdict if before else None,
        "sentence": report.sentence,
        "cut_at": report.plan.cut_at.isoformat(),
        "totals": dict(report.totals),
        "new": report.changes.new,
        "resolved": report.changes.resolved,
        "fixed": report.changes.fixed,
        "unverifiable": report.changes.unverifiable,
        "new_critical": new_critical,
    }
