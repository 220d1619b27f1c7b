"""What a run prints on a terminal; its last three lines are for scripts as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spark.findings.finding import Finding
from spark.findings.sanitizer import sanitized
from spark.report.document import command, of_topics
from spark.report.report import Report, format_count

NAMED: Final = 3
"""Findings that are printed, the worst first; the report has all."""


def summary(report: Report, topics: Sequence[str] = ()) -> str:
    """Return the lines of a finished run, with the worst findings and the next commands.

    ``topics`` limits the findings that are named.
    """
    totals = ", ".join(f"{kind} {format_count(n)}" for kind, n in report.totals.items())
    return (
        f"{report.sentence}\n"
        f"{report.plan.origin.sentence}\n"
        f"in flight {format_count(report.counts.in_flight)}, "
        f"waiting for a decision {format_count(report.counts.prepared)}, "
        f"parked {format_count(report.counts.parked)}\n"
        f"{_worst(report, topics)}"
        f"verdict: {report.verdict}\n"
        f"totals: {totals}\n"
        f"report: {report.folder / 'report.html'}\n"
    )


def _worst(report: Report, topics: Sequence[str]) -> str:
    """Return the worst findings, each with the command that goes on, and where the others are."""
    shown = of_topics(report.findings, topics)
    worst = sorted(shown, key=lambda each: each.severity, reverse=True)
    lines = [_line(each, report.run_id) for each in worst[:NAMED]]
    if len(worst) > NAMED:
        more = format_count(len(worst) - NAMED)
        lines.append(f"{more} more: outbox reconcile show {report.run_id}\n")
    return "".join(lines)


def _line(finding: Finding, run_id: str) -> str:
    name = f"{finding.severity.name.lower()} {finding.finding_class}"
    return f"{name} {_subject(finding)}: {command(finding, run_id)}\n"


def _subject(finding: Finding) -> str:
    """Return what a finding is about, as exactly as it is known."""
    if finding.shard is not None and not finding.message_id and not finding.topic:
        return f"shard {finding.shard}"
    group = finding.producer_group and f"group {sanitized(finding.producer_group)}"
    return finding.message_id or finding.topic or group or "-"
