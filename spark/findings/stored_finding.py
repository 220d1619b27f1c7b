"""A finding as the database keeps it from run to run, and back. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from outbox.reconciliation.finding import StoredFinding
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Severity

STORED_EVIDENCE: Final = (
    *("message_id", "partition", "offset", "key_hash", "shard", "producer_group"),
    *("decision", "decided_at", "record_time"),
)
"""Fields of a finding that are stored with its evidence."""
TIMES: Final = ("decided_at", "record_time")


def stored_finding(finding: Finding) -> StoredFinding:
    """Return a finding as the database keeps it."""
    values = finding.as_json()
    return StoredFinding(
        finding_id=finding.finding_id,
        kind=values["kind"],
        finding_class=values["class"],
        detail=values["detail"],
        severity=values["severity"],
        half_id=finding.half_id,
        topic=finding.topic,
        evidence={**finding.evidence, **{name: values[name] for name in STORED_EVIDENCE}},
    )


def remaining_finding(stored: StoredFinding) -> Finding:
    """Return a finding of an earlier run that this run cannot see, and that is still open."""
    fields: dict[str, Any] = {name: stored.evidence.get(name) for name in STORED_EVIDENCE}
    for name in TIMES:
        fields[name] = fields[name] and datetime.fromisoformat(fields[name])
    fields["key_hash"] = _signed(fields["key_hash"])
    return Finding(
        cause=Cause(stored.cause),
        given_severity=Severity[stored.severity.upper()],
        subject="",
        stored_id=stored.finding_id,
        half_id=stored.half_id,
        topic=stored.topic,
        evidence={k: v for k, v in stored.evidence.items() if k not in STORED_EVIDENCE},
        **fields,
    )


def _signed(text: str | None) -> int | None:
    """Return the signed 64-bit number of 16 hexadecimal digits."""
    if text is None:
        return None
    number = int(text, 16)
    return number - (1 << 64) if number >> 63 else number
