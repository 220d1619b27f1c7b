"""What to do about the findings of a run: its causes, the worst first, one command each. Pure."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final

from spark.findings.finding import OTHER_WRITER, Finding
from spark.findings.finding_class import Cause, GradedCause, Severity
from spark.findings.finding_rules import RULES
from spark.report.report import Report

OF_RUN: Final = "outbox reconcile show {run_id}"
"""The command for a finding that names neither a message nor a topic."""


def do_first(report: Report) -> list[dict[str, Any]]:
    """Return the causes that need an operator, the worst first."""
    rows = cause_rows(report).items()
    return [row for graded, row in rows if graded.severity > Severity.INFO]


def cause_rows(report: Report) -> dict[GradedCause, dict[str, Any]]:
    """Return the causes that occurred as JSON values, the worst first.

    The command is that for the first finding of a cause, the times are of what is faulty.
    """
    examples: dict[GradedCause, Finding] = {}
    for finding in report.findings:
        examples.setdefault(finding.graded, finding)
    topics: dict[GradedCause, Counter[str]] = {}
    for (graded, place), n in report.cause_counts.items():
        topics.setdefault(graded, Counter())[place.topic] += n
    ordered = sorted(topics, key=lambda each: (-each.severity, each.cause))
    return {each: _row(report, each, topics[each], examples.get(each)) for each in ordered}


def _row(
    report: Report, graded: GradedCause, topics: Counter[str], example: Finding | None
) -> dict[str, Any]:
    """Return the row of a cause; ``example`` is None if only worse findings were kept."""
    rule = RULES[graded.cause]
    first, last = report.spans.get(graded, (None, None))
    return {
        "kind": rule.kind.value,
        "class": graded.cause.finding_class.value,
        "detail": graded.cause.detail,
        "severity": graded.severity.name.lower(),
        "findings": topics.total(),
        "topics": [{"topic": name or None, "findings": n} for name, n in topics.most_common()],
        "first": _utc_text(first),
        "last": _utc_text(last),
        "meaning": rule.meaning,
        "action": example.action if example else rule.action,
        "command": command(example, report.run_id)
        if example
        else OF_RUN.format(run_id=report.run_id),
    }


def period(row: dict[str, Any]) -> str:
    """Return the first and the last time of a cause for people, to the second; empty without."""
    ends = [f"{row[name][:19]}Z" for name in ("first", "last") if row[name]]
    return " – ".join(dict.fromkeys(ends))


def _utc_text(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None


def command(finding: Finding, run_id: str) -> str:
    """Return the next command for an operator, the most special one whose facts are all known.

    Without a message, who may write to the topic; without a topic, the findings of the run.
    """
    facts = {
        "run_id": run_id,
        "finding_id": finding.finding_id,
        "message_id": finding.message_id,
        "half_id": finding.half_id,
        "shard": finding.shard,
        "topic": finding.topic,
        "partition": finding.partition,
        "pid": finding.evidence.get("pid"),
    }
    known = {name: value for name, value in facts.items() if value is not None}
    templates = [finding.rule.command, RULES[Cause.FOREIGN_RECORD].command]
    for template in templates[::-1] if OTHER_WRITER in finding.evidence else templates:
        if all(name in known for _, name, _, _ in Formatter().parse(template) if name):
            return template.format(**known)
    return OF_RUN.format(**known)
