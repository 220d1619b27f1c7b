"""A finding: its stable id, its evidence, and those that concern a shard or a partition. Pure.

The id is the chained XXH64 of kind, source and subject, so that the same fault bears the same id in
every run, however its class is refined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from xxhash import xxh64_hexdigest, xxh64_intdigest

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import ANY_PARTITION
from spark.compare.decision_table import Decision
from spark.cut.cut_plan import Gap
from spark.findings.finding_class import RULES, FindingClass, Graded, Rule, Severity

SOURCE: Final = ""
"""The name of the audited cell; one installation has one without a name."""
SEED: Final = 42
BREAKS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, with its evidence and without any value."""

    finding_class: FindingClass
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
    detail: Mapping[str, Any] = field(default_factory=dict)
    by_sha256: bool = False
    """The record's content digest is the committed one: only SHA-256 tells the two apart."""
    given_severity: Severity | None = None
    """How bad it is by the rule of its topic; None is what its class is everywhere."""

    @property
    def severity(self) -> Severity:
        """How bad it is here."""
        return self.rule.severity if self.given_severity is None else self.given_severity

    @property
    def graded(self) -> Graded:
        """Its class, and how bad it is here."""
        return Graded(self.finding_class, self.severity)

    @property
    def rule(self) -> Rule:
        """What its class means."""
        return RULES[self.finding_class]

    @property
    def lasting(self) -> bool:
        """It stays open although later runs do not see it."""
        return self.rule.lasting or self.by_sha256

    @property
    def finding_id(self) -> str:
        """The id under which it is known from run to run."""
        seed = xxh64_intdigest(self.rule.kind.value.encode(), SEED)
        return xxh64_hexdigest(self.subject.encode(), xxh64_intdigest(SOURCE.encode(), seed))


def of_gap(gap: Gap) -> Finding:
    """Return the finding of a partition, or of a whole topic, in which a run saw too little."""
    topic, number = gap.partition
    whole = number == ANY_PARTITION
    place = f"topic:{topic}" if whole else f"partition:{topic}/{number}"
    kept = gap.finding_class in ("NOT_READ", "LSO_STUCK")
    return Finding(
        finding_class=FindingClass(gap.finding_class),
        subject=place if kept else f"{place}:{gap.finding_class}",
        topic=topic,
        partition=None if whole else number,
        detail={"reason": gap.reason},
    )


def of_overdue(rows: Iterable[Any], grace_seconds: int) -> tuple[Finding, ...]:
    """Return one finding for each shard with commits that wait longer than the grace."""
    return tuple(
        Finding(
            finding_class=FindingClass.OVERDUE,
            subject=f"shard:{row['shard']}",
            shard=row["shard"],
            decision=Decision.COMMIT.value,
            detail={
                "overdue": row["overdue"],
                "oldest_committed_at": row["oldest"].isoformat(),
                "grace_seconds": grace_seconds,
            },
        )
        for row in rows
        if row["overdue"]
    )


def of_breaks(rows: Sequence[Any]) -> tuple[Finding, ...]:
    """Return one finding for each shard whose manifests do not chain, with the first breaks."""
    shards = sorted({row["partition"] for row in rows})
    return tuple(
        Finding(
            finding_class=FindingClass.MANIFEST_BREAK,
            subject=f"shard:{shard}",
            shard=shard,
            detail={
                "breaks": [row.asDict() for row in rows if row["partition"] == shard][:BREAKS_SHOWN]
            },
        )
        for shard in shards
    )
