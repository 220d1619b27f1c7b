"""Counts every finding, keeps the worst ones for the report, and writes all of them as Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import SparkSession

from outbox.messages.message_id import HalfId
from outbox.reconciliation.stored_run import Gone
from spark.columns import schemas
from spark.findings.finding import Finding
from spark.findings.finding_class import RULES, FindingClass, Graded, Kind, Severity
from spark.findings.topic_rules import TopicRules, ruled

OPEN: Final = "open"
ACCEPTED: Final = "accepted"
KEPT: Final = 10_000
"""Findings kept on the driver, for the database and the report; Parquet holds the others too."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The findings of one run."""

    spark_session: SparkSession
    run_id: str
    uri: str
    rules: TopicRules = field(default_factory=dict)
    """What operators say of topics: findings are entered as they have it."""
    compacted_topics: frozenset[str] = frozenset()
    counts: Counter[tuple[Graded, str]] = field(default_factory=Counter)
    """By class with its severity, and topic; the topic of a finding that has none is empty."""
    kept: list[Finding] = field(default_factory=list)
    lasting: dict[str, Finding] = field(default_factory=dict)
    """Those that stay open although later runs do not see them: see ``spark.cut.carry_over``."""
    written: bool = False
    accepted_ids: frozenset[str] = frozenset()
    """Findings that an operator accepts for now: kept beside the others, and not counted."""
    accepted: list[Finding] = field(default_factory=list)
    unverifiable: int = 0
    """Messages without a record whose topic was not read, or whose record may have expired."""
    expired: list[HalfId] = field(default_factory=list)
    """Those of them that no later run can settle."""
    gone: Gone = field(default_factory=Gone)

    def enter(self, findings: Iterable[Finding]) -> None:
        """Count, keep and write these findings, save those that a topic's rule excuses."""
        as_ruled = (ruled(each, self.rules, self.compacted_topics) for each in findings)
        findings = [each for each in as_ruled if each is not None]
        if not findings and self.written:
            return
        self._write(findings)
        self.lasting |= {each.finding_id: each for each in findings if each.lasting}
        self.accepted += [each for each in findings if self.accepts(each)]
        self.accepted.sort(key=worst_first)
        self._count([each for each in findings if not self.accepts(each)])

    def accepts(self, finding: Finding) -> bool:
        """Tell whether a finding counts no more; what was not read cannot be accepted as read."""
        return finding.finding_id in self.accepted_ids and not finding.rule.partial

    def _count(self, findings: list[Finding]) -> None:
        self.counts.update((each.graded, each.topic or "") for each in findings)
        self.kept += findings
        self.kept.sort(key=worst_first)
        del self.kept[KEPT:]

    def keep(self, findings: Iterable[Finding]) -> None:
        """Enter what is not entered yet: what earlier runs found and this one did not see."""
        entered = {each.finding_id for each in (*self.kept, *self.accepted)} | self.lasting.keys()
        self.enter([each for each in findings if each.finding_id not in entered])

    @property
    def total(self) -> int:
        """How many findings count, of any severity."""
        return sum(self.counts.values())

    def of(self, finding_class: FindingClass) -> int:
        """How many findings of a class there are."""
        return sum(n for (each, _), n in self.counts.items() if each.finding_class is finding_class)

    def totals(self) -> dict[str, int]:
        """Return the discrepancies of every kind: findings above info."""
        totals = dict.fromkeys((kind.value for kind in Kind), 0)
        for (each, _), n in self.counts.items():
            if each.severity > Severity.INFO:
                totals[RULES[each.finding_class].kind.value] += n
        return totals

    def worst(self) -> Severity | None:
        """Return the highest severity that occurred."""
        return max((each.severity for each, _ in self.counts), default=None)

    def _write(self, findings: list[Finding]) -> None:
        rows = [
            {**parquet_row(self.run_id, each), "status": ACCEPTED if self.accepts(each) else OPEN}
            for each in findings
        ]
        frame = schemas.frame_of(self.spark_session, rows, schemas.FINDINGS)
        frame.coalesce(1).write.mode("append" if self.written else "overwrite").parquet(self.uri)
        self.written = True


def worst_first(finding: Finding) -> tuple[int, str, str, str]:
    """Order findings for people: by severity, then class, topic and subject."""
    return -finding.severity, finding.finding_class, finding.topic or "", finding.subject


def parquet_row(run_id: str, finding: Finding) -> dict[str, Any]:
    """Return a finding as a row of ``schemas.FINDINGS``; the key only as its hash."""
    rule = finding.rule
    return {
        "schema_version": schemas.SCHEMA_VERSION,
        "run_id": run_id,
        "finding_id": finding.finding_id,
        "kind": rule.kind.value,
        "class": finding.finding_class.value,
        "severity": finding.severity.name.lower(),
        "message_id": finding.message_id,
        "topic": finding.topic,
        "partition": finding.partition,
        "offset": finding.offset,
        "key_hash": hex_of(finding.key_hash),
        "producer_group": finding.producer_group,
        "shard": finding.shard,
        "decision": finding.decision,
        "detail": json.dumps(finding.detail, sort_keys=True),
    }


def hex_of(number: int | None) -> str | None:
    """Return a signed 64-bit number as 16 hexadecimal digits."""
    return None if number is None else f"{number & (1 << 64) - 1:016x}"
