"""A report as the JSON of the contract: REST serves it and ``-o json`` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, Final

from spark.columns.schemas import SCHEMA_VERSION
from spark.findings.finding import OTHER_WRITER, Finding
from spark.findings.finding_class import FindingClass
from spark.findings.finding_rules import RULES
from spark.findings.ledger import ACCEPTED, OPEN
from spark.findings.sanitizer import sanitized
from spark.report.report import Report

SHOWN: Final = 1000
"""The maximum number of findings in the JSON."""
OF_RUN: Final = "outbox reconcile show {run_id}"
"""The command for a finding that names neither a message nor a topic."""


def document(
    report: Report, files: Mapping[str, str], topics: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the report as JSON values; ``topics`` limits the findings that are shown."""
    shown = of_topics(report.findings, topics)[:SHOWN]
    accepted = of_topics(report.accepted, topics)[: SHOWN - len(shown)]
    listed = [finding_document(each, report) for each in shown]
    listed += [finding_document(each, report, ACCEPTED) for each in accepted]
    omitted = sum(report.class_counts.values()) + len(report.accepted) - len(listed)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": report.run_id,
        "previous_run_id": report.previous_run_id,
        "verdict": report.verdict.value,
        "sentence": report.sentence,
        "cut": {"at": report.plan.snapshot.taken_at.isoformat(), **report.plan.as_json()},
        "coverage": coverage(report),
        "checked": {"committed": report.counts.judged, "records": report.counts.records},
        "in_flight": report.counts.in_flight,
        "counts": counts(report),
        "totals": dict(report.totals),
        "new": report.changes.new,
        "resolved": report.changes.resolved,
        "fixed": report.changes.fixed,
        "unverifiable": report.changes.unverifiable,
        "findings": listed,
        "findings_omitted": omitted,
        "report": dict(files),
        "timings": dict(report.timings),
        "versions": dict(report.versions),
    }


def of_topics(findings: Sequence[Finding], topics: Sequence[str]) -> Sequence[Finding]:
    """Return the findings of these topics and those without a topic; without topics, all."""
    return [each for each in findings if not topics or not each.topic or each.topic in topics]


def coverage(report: Report) -> dict[str, Any]:
    """Return how much of the plan was read, and which parts were not."""
    partitions, shards = report.partitions_read, report.shards_read
    return {
        "ratio": report.coverage_ratio,
        "partitions": {"read": partitions[0], "planned": partitions[1]},
        "shards": {"read": shards[0], "planned": shards[1]},
        "not_read": [
            {"topic": gap.partition.topic, "partition": gap.partition.number, "reason": gap.reason}
            for gap in report.plan.log.gaps
        ],
    }


def counts(report: Report) -> dict[str, int]:
    """Return the counts other than findings."""
    return {
        "prepared": report.counts.prepared,
        "parked": report.counts.parked,
        "ahead": report.counts.ahead,
        "foreign": report.counts.foreign,
        "before_baseline": report.counts.baseline,
        "unverifiable": report.counts.unverifiable,
        "accepted": len(report.accepted),
    }


def finding_document(finding: Finding, report: Report, status: str = OPEN) -> dict[str, Any]:
    """Return one finding with its evidence, its meaning, and what to do about it."""
    rule = finding.rule
    return {
        **finding.as_json(),
        "status": status,
        "key": key_shown(finding) if report.show_keys else None,
        "meaning": rule.meaning,
        "action": finding.action,
        "command": command(finding, report.run_id),
    }


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
        "pid": finding.detail.get("pid"),
    }
    known = {name: value for name, value in facts.items() if value is not None}
    templates = [finding.rule.command, RULES[FindingClass.FOREIGN].command]
    for template in templates[::-1] if OTHER_WRITER in finding.detail else templates:
        if all(name in known for _, name, _, _ in Formatter().parse(template) if name):
            return template.format(**known)
    return OF_RUN.format(**known)


def key_shown(finding: Finding) -> str | None:
    """Return the key as text; bytes that are not UTF-8 or not printable are escaped."""
    if finding.key is None:
        return None
    return sanitized(finding.key.decode("utf-8", "backslashreplace"))
