"""Counts every finding, keeps the worst ones for the report, and writes all of them to Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from outbox.messages.message_id import HalfId
from outbox.reconciliation.finding import UNREAD_CAUSES
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import ExpiredEvidence
from spark.columns import schemas
from spark.columns.collected_times import in_utc
from spark.columns.parquet_folder import ParquetFolder
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, GradedCause, Kind, Place, Severity, Span
from spark.findings.finding_rules import RULES
from spark.findings.topic_rules import TopicRules, apply_topic_rule, rule_of

OPEN: Final = "open"
ACCEPTED: Final = "accepted"
KEPT: Final = 10_000
"""Findings kept on the driver, for the database and the report; Parquet contains all."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The findings of one run."""

    run_id: str
    folder: Path
    """The folder of Parquet files."""
    rules: TopicRules = field(default_factory=dict)
    """The rules of operators by topic; they are applied to every finding."""
    compacted_topics: frozenset[str] = frozenset()
    counts: Counter[tuple[GradedCause, Place]] = field(default_factory=Counter)
    """By cause with its severity, and by topic and producer group."""
    spans: dict[GradedCause, Span] = field(default_factory=dict)
    """The first and the last time of what is faulty: of the decision, or else of the record."""
    kept: list[Finding] = field(default_factory=list)
    files: ParquetFolder | None = None
    accepted_ids: frozenset[str] = frozenset()
    """Findings that an operator accepts for now; they are kept separately and not counted."""
    accepted: list[Finding] = field(default_factory=list)
    unverifiable: Counter[Partition] = field(default_factory=Counter)
    """By place the messages without a record whose topic was not read or whose record may have
    expired."""
    expired: list[HalfId] = field(default_factory=list)
    """Those of them that no later run can verify."""
    expired_evidence: ExpiredEvidence = field(default_factory=ExpiredEvidence)

    def enter(self, findings: Iterable[Finding]) -> None:
        """Count, keep and write these findings, except those that a topic's rule removes."""
        ruled = (apply_topic_rule(each, self.rules, self.compacted_topics) for each in findings)
        entered = [each for each in ruled if each is not None]
        self._write(entered)
        self.accepted += filter(self.accepts, entered)
        self.accepted.sort(key=severity_order)
        self._count([each for each in entered if not self.accepts(each)])

    def enter_losses(self, losses: DataFrame) -> None:
        """Count plain losses and write them to Parquet; none of them is kept on the driver."""
        lost, at = Cause.LOST_PUBLISHED, F.col("decided_at")
        counted = losses.groupBy("topic", "producer_group").agg(F.count("*"), F.min(at), F.max(at))
        severities: list[Column] = []
        for topic, group, count, *ends in counted.collect():
            ruled = rule_of(topic, self.rules).severity_of(lost)
            graded = GradedCause(lost, RULES[lost].severity if ruled is None else ruled)
            self.counts[graded, Place(topic, group)] += count
            self._extend(graded, *map(in_utc, ends))
            severities += F.lit(topic), F.lit(graded.severity.name.lower())
        if severities:
            self._write([])
            severity = F.create_map(*severities)[F.col("topic")]
            add_rows(losses.withColumn("severity", severity), self.run_id, self.folder)

    def accepts(self, finding: Finding) -> bool:
        """Return whether a finding is accepted; what was not read cannot be accepted."""
        accepted = finding.finding_id in self.accepted_ids
        return accepted and finding.cause not in UNREAD_CAUSES

    def excuses(self, finding: Finding) -> bool:
        """Return whether the rule of its topic removes a finding."""
        return apply_topic_rule(finding, self.rules, self.compacted_topics) is None

    def _count(self, findings: list[Finding]) -> None:
        for each in findings:
            self.counts[each.graded, Place(each.topic or "", each.producer_group or "")] += 1
            self._extend(each.graded, each.decided_at or each.record_time)
        self.kept += findings
        self.kept.sort(key=severity_order)
        del self.kept[KEPT:]

    def _extend(self, graded: GradedCause, *times: datetime | None) -> None:
        """Extend the span of a cause by those times that are known."""
        known = [*self.spans.get(graded, ()), *filter(None, times)]
        if known:
            self.spans[graded] = min(known), max(known)

    def keep(self, findings: Iterable[Finding]) -> None:
        """Enter the findings of earlier runs that this run did not enter itself."""
        entered = self.entered
        self.enter([each for each in findings if each.finding_id not in entered])

    @property
    def entered(self) -> frozenset[str]:
        """The findings of this run, as far as they are kept."""
        return frozenset(each.finding_id for each in (*self.kept, *self.accepted))

    @property
    def total(self) -> int:
        """The number of findings that count, of any severity."""
        return sum(self.counts.values())

    def totals(self) -> dict[str, int]:
        """Return the number of findings above info, by kind."""
        totals = dict.fromkeys((kind.value for kind in Kind), 0)
        for (each, _), n in self.counts.items():
            if each.severity > Severity.INFO:
                totals[RULES[each.cause].kind.value] += n
        return totals

    def _write(self, findings: list[Finding]) -> None:
        if self.files is None:
            self.files = ParquetFolder.emptied(self.folder)
        elif not findings:
            return
        statuses = {True: ACCEPTED, False: OPEN}
        rows = [parquet_row(self.run_id, each, statuses[self.accepts(each)]) for each in findings]
        self.files.add(rows, schemas.FINDINGS)


def severity_order(finding: Finding) -> tuple[int, str, str, str]:
    """Return the sort key for reports: severity, then cause, topic and subject."""
    return -finding.severity, finding.cause, finding.topic or "", finding.subject


def parquet_row(run_id: str, finding: Finding, status: str) -> dict[str, Any]:
    """Return a finding as a row of ``schemas.FINDINGS``; it has the hash of the key only."""
    return {
        **finding.as_json(),
        "schema_version": schemas.SCHEMA_VERSION,
        "run_id": run_id,
        "status": status,
        "decided_at": finding.decided_at,
        "record_time": finding.record_time,
        "evidence": json.dumps(finding.evidence, sort_keys=True),
    }


def add_rows(findings: DataFrame, run_id: str, folder: Path) -> None:
    """Add findings that were made in Spark to the Parquet files; columns they lack are null."""
    given = findings.withColumns(
        {
            "schema_version": F.lit(schemas.SCHEMA_VERSION),
            "run_id": F.lit(run_id),
            "status": F.lit(OPEN),
        }
    )
    rows = given.to(from_arrow_schema(schemas.FINDINGS))
    rows.write.mode("append").parquet(f"file://{folder}")
