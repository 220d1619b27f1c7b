"""From a suspect to its findings: reduce it to the deciding facts, classify them, add the evidence.

Pure. A record with a suspect's half id but other random bits is a stranger: it is judged by itself
and is no copy of the message.
"""

from __future__ import annotations

from typing import Any

from outbox.reconciliation.snapshot import KnownHalf
from spark.compare.decision_table import Decision, Facts, classify
from spark.compare.evidence import Copy, Suspect
from spark.compare.expiry import PUBLISHED
from spark.compare.facts import (
    Judgement,
    Unverifiable,
    facts_of,
    is_retired,
    unverifiable_reason,
)
from spark.findings.finding import OTHER_WRITER, RETIRED, Finding
from spark.findings.finding_class import Cause, Kind
from spark.findings.finding_rules import RULES


def findings_of_suspect(suspect: Suspect, judgement: Judgement) -> tuple[Finding, ...]:
    """Return the findings about the message, and about records that only share its half id."""
    own = [copy for copy in suspect.found if copy not in suspect.strangers]
    found: list[Finding] = []
    for each in classify(facts_of(suspect, judgement)):
        if RULES[each].kind is Kind.UNEXPECTED:
            found += [_record_finding(suspect, each, copy, judgement) for copy in own]
        else:
            found.append(_message_finding(suspect, each))
    if unverifiable_reason(suspect, judgement) is Unverifiable.COMPACTED:
        found.append(_message_finding(suspect, Cause.UNVERIFIABLE_COMPACTED))
    for copy in suspect.strangers:
        found += [
            _record_finding(suspect, each, copy, judgement)
            for each in classify(_stranger(suspect, copy))
        ]
    return tuple(found)


def _stranger(suspect: Suspect, copy: Copy) -> Facts:
    return Facts(decision=Decision.ABSENT, copies=1, forgotten=suspect.is_missing_in_postgres(copy))


def _message_finding(suspect: Suspect, cause: Cause) -> Finding:
    return Finding.about_message(
        cause,
        suspect.half_id,
        suspect.known,
        message_id=suspect.named_id,
        position=suspect.position,
        decided_at=suspect.committed_at,
        **_place_of(suspect.first),
        expected_digest=suspect.digest,
        evidence=_evidence(suspect),
    )


def _record_evidence(
    suspect: Suspect, known: KnownHalf | None, judgement: Judgement
) -> dict[str, Any]:
    if known is not None:
        return {"decided_by": known.decided_by, "parked": known.parked}
    return {RETIRED: True} if is_retired(suspect, judgement) else {}


def _record_finding(suspect: Suspect, cause: Cause, copy: Copy, judgement: Judgement) -> Finding:
    topic, number = copy.partition
    known = None if copy in suspect.strangers else suspect.known
    return Finding.about_message(
        cause,
        suspect.half_id,
        known,
        subject=f"record:{topic}/{number}/{copy.offset}/{copy.message_id}",
        message_id=copy.message_id,
        topic=topic,
        **_place_of(copy),
        evidence=_record_evidence(suspect, known, judgement),
    )


def _place_of(copy: Copy | None) -> dict[str, Any]:
    if copy is None:
        return {}
    return {
        "partition": copy.partition.number,
        "offset": copy.offset,
        "key_hash": copy.key_hash,
        "batch_no": copy.batch_no,
        "record_time": copy.published_at,
        "actual_digest": copy.digest,
    }


def _is_of_another_writer(copy: Copy, suspect: Suspect) -> bool:
    """Whether a record is in no batch that published the message, or not where that batch put it.

    A batch is known by its manifest, or by the place that the relay recorded.
    """
    batches = {each["batch_no"] for each in suspect.listed if each["status"] in PUBLISHED}
    place = suspect.place
    if place is not None:
        batches.add(place.batch_no)
        if copy.batch_no == place.batch_no:
            return (copy.partition.number, copy.offset) != (place.partition, place.offset)
    return bool(batches) and not copy.redriven and copy.batch_no not in batches


def _evidence(suspect: Suspect) -> dict[str, Any]:
    """Return the evidence from the stores for a report."""
    evidence: dict[str, Any] = {"copies": suspect.copies, "manifests": list(suspect.listed)}
    if len(suspect.own) > 1:
        evidence["places"] = [
            {"topic": c.partition.topic, "partition": c.partition.number, "offset": c.offset}
            | {"batch_no": c.batch_no, "redriven": c.redriven, "same": c.digest == suspect.digest}
            for c in suspect.own
        ]
        if any(_is_of_another_writer(copy, suspect) for copy in suspect.own):
            evidence[OTHER_WRITER] = True
    if suspect.comparison is not None:
        evidence["differs"] = dict(suspect.comparison.evidence)
    if suspect.place is not None:
        evidence["recorded"] = {
            "partition": suspect.place.partition,
            "offset": suspect.place.offset,
        }
    if suspect.hold is not None:
        evidence["publish_error"] = suspect.hold.publish_error
        evidence["held_at"] = suspect.hold.held_at.isoformat()
        evidence["held_in_shard"] = suspect.hold.waiting
    return evidence
