"""What a run prints on a terminal; its last three lines are for scripts as well."""

from __future__ import annotations

from typing import Final

from spark.findings.finding import Finding
from spark.report.document import command
from spark.report.report import Report, format_count

NAMED: Final = 3
"""Findings that are printed, the worst first; the report has all."""


def summary(report: Report) -> str:
    """Return the lines of a finished run, with the worst findings and the next commands."""
    totals = ", ".join(f"{kind} {format_count(n)}" for kind, n in report.totals.items())
    return (
        f"{report.sentence}\n"
        f"{report.plan.origin.sentence}\n"
        f"in flight {format_count(report.counts.in_flight)}, "
        f"waiting for a producer {format_count(report.counts.prepared)}, "
        f"parked {format_count(report.counts.parked)}\n"
        f"{_worst(report)}"
        f"verdict: {report.verdict}\n"
        f"totals: {totals}\n"
        f"report: {report.folder / 'report.html'}\n"
    )


def _worst(report: Report) -> str:
    """Return the worst findings, each with the command that goes on, and where the others are."""
    worst = sorted(report.findings, key=lambda each: each.severity, reverse=True)
    lines = [_line(each, report.run_id) for each in worst[:NAMED]]
    if len(worst) > NAMED:
        more = format_count(len(worst) - NAMED)
        lines.append(f"{more} more: outbox reconcile show {report.run_id}\n")
    return "".join(lines)


def _line(finding: Finding, run_id: str) -> str:
    subject = finding.message_id or finding.topic or "-"
    name = f"{finding.severity.name.lower()} {finding.finding_class}"
    return f"{name} {subject}: {command(finding, run_id)}\n"
