"""Sums a run up: counts, verdict, the sentence people read first, and the JSON of the contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.messages.message_id import SHARDS
from outbox.reconciliation.snapshot import Undecided
from outbox.reconciliation.stored_run import (
    ChainStep,
    Changes,
    Gone,
    PastRun,
    StoredFinding,
    StoredRun,
)
from spark.compare.sha256_check import Digest
from spark.cut.cut_plan import Plan
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass, Graded, Kind
from spark.findings.ledger import hex_of
from spark.findings.verdict import Verdict
from spark.report.language import ENGLISH, Language, Words

MINUTES_SHOWN: Final = 10_080
"""A week of minutes; the chart shows the newest ones."""
FORMATS: Final = ("html", "json", "md", "csv")
VERDICT: Final = (
    "{judged} committed messages checked up to {at}Z: {lost} lost, {late} late, "
    "{of_duplicate} duplicated, {of_unexpected} unexpected, {of_mismatch} altered, "
    "{of_disordered} out of order; {read}"
)
COVERED: Final = "{partitions[0]} of {partitions[1]} partitions, {shards[0]} of {shards[1]} shards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much was on either side of the cut."""

    judged: int
    """Committed messages at or below the cut of their shard."""
    in_flight: int
    baseline: int
    """Committed before the oldest manifest that Kafka keeps: not judged as missing."""
    records: int
    ahead: int
    foreign: int
    """Records without a valid outbox_message_id: other writers' and not judged."""
    prepared: int
    parked: int
    unverifiable: int
    """Judged, without a record, and not called missing: the record expired or was not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """Committed and published messages of one minute."""

    minute: datetime
    committed: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Percentiles of publishing in seconds, of a minute or of a topic; of a sample."""

    minute: datetime | None
    topic: str | None
    messages: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that is told of a run, in any format."""

    run_id: str
    started_at: datetime
    plan: Plan
    verdict: Verdict
    counts: Counts
    class_counts: Mapping[tuple[Graded, str], int]
    """By class with its severity, and topic."""
    totals: Mapping[str, int]
    findings: Sequence[Finding]
    """Those that count, the worst ones first."""
    changes: Changes
    minutes: Sequence[Minute]
    timings: Mapping[str, float]
    versions: Mapping[str, str]
    folder: Path
    digest: Digest = Digest.XXH64
    """By what the sample was compared."""
    show_keys: bool = False
    formats: Sequence[str] = FORMATS
    """What is written as a file, besides Parquet."""
    language: Language = Language.EN
    latencies: Sequence[Latency] = ()
    past: Sequence[PastRun] = ()
    log_state: Mapping[str, Any] = field(default_factory=dict)
    """What the next run compares the log with."""
    step: ChainStep | None = None
    """How the run moves the last cut on."""
    accepted: Sequence[Finding] = ()
    """Those that an operator accepts for now; they are told and count nowhere."""
    gone: Gone = field(default_factory=Gone)
    dirty_ratio: float | None = None
    """How many of the folded ranges differed, 0 to 1; None where the sides were not folded."""

    @property
    def complete(self) -> bool:
        """The whole plan was read."""
        return not self.plan.log.gaps

    @property
    def resolves(self) -> bool:
        """What was open before and is not here again has ended."""
        return self.complete and len(self.findings) == sum(self.class_counts.values())

    @property
    def partitions_read(self) -> tuple[int, int]:
        """Data partitions read to the cut, and all of them."""
        log = self.plan.log
        unread = {gap.partition for gap in log.gaps if gap.partition.topic != log.progress_topic}
        read = {each.partition for each in log.records} - unread
        return len(read), len(read | unread)

    @property
    def shards_read(self) -> tuple[int, int]:
        """Relay shards whose manifests were read, and all of them."""
        log = self.plan.log
        unread = {gap.partition for gap in log.gaps if gap.partition.topic == log.progress_topic}
        return SHARDS - len(unread), SHARDS

    @property
    def previous_run_id(self) -> str | None:
        """The newest run before this one."""
        return self.past[-1].run_id if self.past else None

    @property
    def new_by_class(self) -> dict[Graded, int]:
        """How many of the kept findings were not open before, by class and severity."""
        new = (f.graded for f in self.findings if f.finding_id not in self.changes.known)
        return dict(Counter(new))

    @property
    def coverage_ratio(self) -> float:
        """How much of the plan was read, 0 to 1: partitions and shards alike."""
        (read, planned), (shards, all_shards) = self.partitions_read, self.shards_read
        return round((read + shards) / (planned + all_shards), 4)

    @property
    def graded(self) -> dict[Graded, int]:
        """How many findings there are of each class and severity."""
        counted: Counter[Graded] = Counter()
        for (each, _), n in self.class_counts.items():
            counted[each] += n
        return dict(counted)

    @property
    def by_class(self) -> dict[FindingClass, int]:
        """How many findings there are of each class."""
        return {each.finding_class: self.count(each.finding_class) for each in self.graded}

    def count(self, *classes: FindingClass) -> int:
        """How many findings of these classes there are."""
        return sum(n for (each, _), n in self.class_counts.items() if each.finding_class in classes)

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        return self.told(ENGLISH)

    def told(self, t: Words) -> str:
        """Return the verdict in one line, in these words."""
        partitions, shards = self.partitions_read, self.shards_read
        sentence = t(
            VERDICT,
            judged=spaced(self.counts.judged),
            at=f"{self.plan.cut_at:%H:%M:%S}",
            lost=spaced(self.count(FindingClass.LOST, FindingClass.SKIPPED)),
            late=spaced(self.count(FindingClass.HELD, FindingClass.OVERDUE)),
            **{f"of_{kind}": spaced(n) for kind, n in self.totals.items()},
            read=t(COVERED, partitions=partitions, shards=shards),
        )
        return sentence + self._clocks(t) + self._repeated(t)

    def _clocks(self, t: Words) -> str:
        """Return what is said of topics that are late or whose clocks are off."""
        found = self.totals[Kind.LATENCY]
        return t("; {n} of latency or clocks", n=spaced(found)) if found else ""

    def _repeated(self, t: Words) -> str:
        """Return what is said of the lane at_least_once, where it repeated something."""
        repeated = self.count(FindingClass.EXPECTED_DUPLICATE)
        text = "; {n} published again, duplicates expected"
        return t(text, n=spaced(repeated)) if repeated else ""


def counts_of(totals: DataFrame, records: int, undecided: Undecided, unverifiable: int) -> Counts:
    """Collect the one row of ``reconcile.totals``; ``records`` are all that were read."""
    row = {name: count or 0 for name, count in totals.collect()[0].asDict().items()}
    return Counts(
        records=records,
        prepared=undecided.prepared,
        parked=undecided.parked,
        unverifiable=unverifiable,
        **row,
    )


def minutes_of(minutes: DataFrame) -> tuple[Minute, ...]:
    """Collect the newest minutes, in order."""
    newest = minutes.orderBy("minute", ascending=False).limit(MINUTES_SHOWN).collect()
    return tuple(Minute(**row.asDict()) for row in reversed(newest))


def latencies_of(latencies: DataFrame) -> tuple[Latency, ...]:
    """Collect the newest minutes and every topic, each in order."""
    newest = latencies.orderBy(F.col("minute").desc_nulls_first(), "topic").limit(MINUTES_SHOWN)
    rows = [Latency(**row.asDict()) for row in newest.collect()]
    return tuple(reversed(rows))


def stored_run(report: Report, reports: Mapping[str, str]) -> StoredRun:
    """Return what is kept of the run in the database."""
    return StoredRun(
        run_id=report.run_id,
        previous_run_id=report.previous_run_id,
        mode=report.plan.origin.mode,
        started_at=report.started_at,
        cut_at=report.plan.cut_at,
        verdict=report.verdict.value,
        sentence=report.sentence,
        complete=report.resolves,
        plan={
            **report.plan.as_json(),
            "log": report.log_state,
            "coverage": report.coverage_ratio,
            "latency": _quantiles(report.latencies),
            "dirty_ratio": report.dirty_ratio,
        },
        counts=asdict(report.counts),
        totals=report.totals,
        timings=report.timings,
        findings=tuple(_stored(each) for each in (*report.findings, *report.accepted)),
        reports=reports,
        step=report.step,
        gone=report.gone,
    )


def _quantiles(latencies: Sequence[Latency]) -> dict[str, dict[str, float]]:
    """Return the percentiles of each topic in seconds, by quantile, as metrics name them."""
    return {
        each.topic: {"0.5": each.p50, "0.95": each.p95, "0.99": each.p99}
        for each in latencies
        if each.topic is not None
    }


def spaced(number: int) -> str:
    """Write a number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def _stored(finding: Finding) -> StoredFinding:
    place = {
        "partition": finding.partition,
        "offset": finding.offset,
        "shard": finding.shard,
        "producer_group": finding.producer_group,
        "decision": finding.decision,
        "decided_at": finding.decided_at.isoformat() if finding.decided_at else None,
        "record_time": finding.record_time.isoformat() if finding.record_time else None,
    }
    return StoredFinding(
        finding_id=finding.finding_id,
        kind=finding.rule.kind.value,
        finding_class=finding.finding_class.value,
        severity=finding.severity.name.lower(),
        half_id=finding.half_id,
        topic=finding.topic,
        detail={
            **finding.detail,
            **place,
            "message_id": finding.message_id,
            "key_hash": hex_of(finding.key_hash),
        },
    )
