"""A finding: its stable id and its evidence. Pure.

The id is the chained XXH64 of kind, source and subject. So the same fault has the same id in every
run, also when its cause is refined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from xxhash import xxh64_hexdigest, xxh64_intdigest

from outbox.messages.message_id import HalfId, shard_in
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from outbox.reconciliation.snapshot import KnownHalf
from spark.columns.collected_times import in_utc
from spark.findings.finding_class import Cause, GradedCause, Severity
from spark.findings.finding_rules import RULES, Rule

SOURCE: Final = ""
"""The name of the audited cell; one installation has one cell, without a name."""
SEED: Final = 42
RETIRED: Final = "retired"
"""The evidence of a record whose message, if there was one, is older than what is stored."""
FIND_WRITER: Final = (
    "Another writer wrote a record that is in no batch of the relay: find it, and restrict the"
    " write ACL of the topic to the relay. Consumers must deduplicate by outbox_message_id."
)
"""What to do about a duplicate of which the relay wrote one record only."""
OTHER_WRITER: Final = "other_writer"
"""The evidence of a message with a record that its relay has not written."""
UNDECIDED: Final = "NONE"
ABSENT: Final = "ABSENT"
"""The decision of a message that is not stored."""
RECORD_COLUMNS: Final = ("topic", "partition", "offset", "key_hash", "shard", "batch_no")
"""Columns of a row of Spark about a record that are fields of its finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault with its evidence, without any value."""

    cause: Cause
    subject: str
    half_id: HalfId | None = None
    message_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    key: bytes | None = field(default=None, repr=False)
    key_hash: int | None = None
    producer_group: str | None = None
    shard: int | None = None
    batch_no: int | None = None
    position: tuple[int, int] | None = None
    decision: str | None = None
    decided_at: datetime | None = None
    record_time: datetime | None = None
    expected_digest: int | None = None
    actual_digest: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    given_severity: Severity | None = None
    """The severity by the rule of its topic; None is the severity of its cause."""
    stored_id: str | None = None
    """The id under which an earlier run has stored it; this run cannot see it, and has no subject.
    """

    @classmethod
    def about_message(
        cls, cause: Cause, half_id: HalfId, known: KnownHalf | None = None, **more: Any
    ) -> Finding:
        """Return the finding of a message with what is stored of it; ``more`` replaces that."""
        fields: dict[str, Any] = {"half_id": half_id, "shard": shard_in(half_id)}
        fields["decision"] = ABSENT
        if known is not None:
            message = known.half.message
            fields |= {
                "message_id": str(known.half.message_id),
                "topic": message.topic,
                "key": message.key,
                "producer_group": message.producer_group,
                "decision": known.decision or UNDECIDED,
                "decided_at": known.decided_at,
            }
        fields |= more
        subject = f"message:{fields.get('message_id', half_id)}"
        return cls(**{"cause": cause, "subject": subject, **fields})

    @classmethod
    def about_partition(
        cls, cause: Cause, partition: Partition, which: str, evidence: Mapping[str, Any]
    ) -> Finding:
        """Return a finding of a partition or a whole topic; its subject ends with ``which``.

        The topic is empty for messages whose halves were retired before a run judged them.
        """
        topic, number = partition
        whole = number == WHOLE_TOPIC
        place = f"topic:{topic}" if whole else f"partition:{topic}/{number}"
        return cls(
            cause=cause,
            subject=f"{place}{which}",
            topic=topic or None,
            partition=None if whole else number,
            evidence=evidence,
        )

    @property
    def severity(self) -> Severity:
        """The severity by the rule of its topic, or else of its cause."""
        return self.rule.severity if self.given_severity is None else self.given_severity

    @property
    def graded(self) -> GradedCause:
        """The cause with this severity."""
        return GradedCause(self.cause, self.severity)

    @property
    def rule(self) -> Rule:
        """The rule of its cause."""
        return RULES[self.cause]

    @property
    def action(self) -> str:
        """What an operator should do."""
        return FIND_WRITER if OTHER_WRITER in self.evidence else self.rule.action

    @property
    def finding_id(self) -> str:
        """The id that is the same in every run."""
        if self.stored_id is not None:
            return self.stored_id
        seed = xxh64_intdigest(self.rule.kind.value.encode(), SEED)
        return xxh64_hexdigest(self.subject.encode(), xxh64_intdigest(SOURCE.encode(), seed))

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values without key and value; every stored or shown form uses these."""
        return {
            "finding_id": self.finding_id,
            "kind": self.rule.kind.value,
            "class": self.cause.finding_class.value,
            "detail": self.cause.detail,
            "severity": self.severity.name.lower(),
            "message_id": self.message_id,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "key_hash": hexadecimal(self.key_hash),
            "producer_group": self.producer_group,
            "shard": self.shard,
            "batch": self.batch_no,
            "position": self.position,
            "decision": self.decision,
            "decided_at": self.decided_at.isoformat() if self.decided_at else None,
            "record_time": self.record_time.isoformat() if self.record_time else None,
            "expected_digest": hexadecimal(self.expected_digest),
            "actual_digest": hexadecimal(self.actual_digest),
            "evidence": dict(self.evidence),
        }


def record_fields(row: Any) -> dict[str, Any]:
    """Return the fields of a finding that a row of Spark has: a record, and its commit."""
    return {
        **{name: row[name] for name in RECORD_COLUMNS},
        "position": tuple(row["position"]),
        "decided_at": in_utc(row["decided_at"]),
        "record_time": in_utc(row["record_time"]),
    }


def hexadecimal(number: int | None) -> str | None:
    """Return a signed 64-bit number as 16 hexadecimal digits."""
    return None if number is None else f"{number & (1 << 64) - 1:016x}"
