"""A report as the JSON of the contract: REST serves it and ``-o json`` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spark.columns.schemas import SCHEMA_VERSION
from spark.findings.finding import Finding
from spark.findings.ledger import ACCEPTED, OPEN
from spark.findings.sanitizer import sanitized
from spark.report.do_first import command, do_first
from spark.report.report import Report
from spark.report.topic_counts import rows_by

SHOWN: Final = 1000
"""The maximum number of findings in the JSON."""


def document(report: Report, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the report as JSON values."""
    shown = report.findings[:SHOWN]
    accepted = report.accepted[: SHOWN - len(shown)]
    listed = [finding_document(each, report) for each in shown]
    listed += [finding_document(each, report, ACCEPTED) for each in accepted]
    omitted = sum(report.cause_counts.values()) + len(report.accepted) - len(listed)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": report.run_id,
        "previous_run_id": report.previous_run_id,
        "verdict": report.verdict.value,
        "sentence": report.sentence,
        "started_at": report.started_at.isoformat(),
        "duration_seconds": report.duration_seconds,
        "full_because": report.full_because,
        "do_first": do_first(report),
        "cut": {"at": report.plan.snapshot.taken_at.isoformat(), **report.plan.as_json()},
        "coverage": coverage(report),
        "checked": {"committed": report.counts.judged, "records": report.counts.records},
        "in_flight": report.counts.in_flight,
        "counts": counts(report),
        "topics": rows_by(report.by_place, "topic"),
        "producer_groups": rows_by(report.by_place, "producer_group"),
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


def key_shown(finding: Finding) -> str | None:
    """Return the key as text; bytes that are not UTF-8 or not printable are escaped."""
    if finding.key is None:
        return None
    return sanitized(finding.key.decode("utf-8", "backslashreplace"))
