"""The notice about a run: sent when the verdict changed or a critical finding is new. Pure.

A notice contains counts and run ids, but no key, value or message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spark.findings.finding_class import Severity
from spark.findings.verdict import Verdict
from spark.report.report import Report

CHANGED: Final = "reconciliation.changed"


def notice_of(report: Report) -> Mapping[str, Any] | None:
    """Return the notice about a run, or None if nothing changed since the previous run.

    Before the first run the verdict counts as clean.
    """
    previous = report.previous
    verdict_before = previous.verdict if previous else Verdict.CLEAN.value
    new_critical = sum(
        each.severity is Severity.CRITICAL and each.finding_id not in report.changes.known_ids
        for each in report.findings
    )
    if report.verdict.value == verdict_before and not new_critical:
        return None
    return {
        "run_id": report.run_id,
        "previous_run_id": report.previous_run_id,
        "verdict": report.verdict.value,
        "previous_verdict": previous.verdict if previous else None,
        "sentence": report.sentence,
        "cut_at": report.plan.cut_at.isoformat(),
        "totals": dict(report.totals),
        "new": report.changes.new,
        "resolved": report.changes.resolved,
        "fixed": report.changes.fixed,
        "unverifiable": report.changes.unverifiable,
        "new_critical": new_critical,
    }
