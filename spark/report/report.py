"""The result of a run: counts, verdict, findings, and the sentence that people read first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from outbox.messages.message_id import SHARDS
from outbox.reconciliation.finding import FindingChanges
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from outbox.reconciliation.run import CheckpointUpdate, ExpiredEvidence, FinishedRun
from spark.cut.cut_plan import Plan
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass, GradedCause, Kind, Place, Span, causes_named
from spark.findings.verdict import Verdict
from spark.report.topic_counts import PlaceCounts, with_findings

PLACES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of messages and records on both sides of the cut."""

    judged: int
    """Committed messages at or below the cut of their shard."""
    in_flight: int
    baseline: int
    """Messages committed before the oldest manifest in Kafka: not judged as missing."""
    records: int
    ahead: int
    foreign: int
    """Records of other writers, without a valid outbox_message_id: not judged."""
    prepared: int
    parked: int
    unverifiable: int
    """Judged messages without a record that are not called missing.

    Their record expired or was not read.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that is shown of a run, in any format."""

    run_id: str
    started_at: datetime
    plan: Plan
    verdict: Verdict
    counts: Counts
    duration_seconds: float
    """From the start to the verdict; the time to store the report is not known before."""
    cause_counts: Mapping[tuple[GradedCause, Place], int]
    """By cause with its severity, and by topic and producer group."""
    totals: Mapping[str, int]
    findings: Sequence[Finding]
    """The findings that count, the worst first."""
    changes: FindingChanges
    timings: Mapping[str, float]
    versions: Mapping[str, str]
    folder: Path
    show_keys: bool = False
    unverifiable: Mapping[Partition, int] = field(default_factory=dict)
    """The unverifiable messages by recorded place, or by topic without one."""
    spans: Mapping[GradedCause, Span] = field(default_factory=dict)
    """The first and the last time of what is faulty, of the findings whose time is known."""
    read: PlaceCounts = field(default_factory=dict)
    """What the run has read, by topic and producer group."""
    previous: FinishedRun | None = None
    """The newest run before this one."""
    checkpoint: CheckpointUpdate | None = None
    """The checkpoint that the run leaves for the next run."""
    accepted: Sequence[Finding] = ()
    """Findings that an operator accepts for now; they are shown but not counted."""
    expired_evidence: ExpiredEvidence = field(default_factory=ExpiredEvidence)

    @property
    def complete(self) -> bool:
        """The whole plan was read."""
        return not self.plan.log.gaps

    @property
    def resolves(self) -> bool:
        """Open findings that this run does not see again are closed by it."""
        return self.complete and len(self.findings) == sum(self.cause_counts.values())

    @property
    def by_place(self) -> PlaceCounts:
        """What was read and what was found, by topic and producer group."""
        return with_findings(self.read, self.cause_counts)

    @property
    def full_because(self) -> str | None:
        """Why everything was read; None if the run continues another one."""
        return self.plan.origin.reason if self.plan.origin.run_id is None else None

    @property
    def course(self) -> str:
        """Where the run began, why if it has read everything, and how long it took."""
        return f"{self.plan.origin.sentence}; took {self.duration_seconds:.1f} s"

    @property
    def partitions_read(self) -> tuple[int, int]:
        """The number of data partitions read up to the cut, and of all data partitions."""
        log = self.plan.log
        unread = {gap.partition for gap in log.gaps if gap.partition.topic != log.progress_topic}
        read = {each.partition for each in log.records} - unread
        return len(read), len(read | unread)

    @property
    def shards_read(self) -> tuple[int, int]:
        """The number of relay shards whose manifests were read, and of all shards."""
        log = self.plan.log
        unread = {gap.partition for gap in log.gaps if gap.partition.topic == log.progress_topic}
        return SHARDS - len(unread), SHARDS

    @property
    def coverage(self) -> str:
        """How much of the plan was read, in words."""
        (partitions, all_partitions), (shards, all_shards) = self.partitions_read, self.shards_read
        return f"{partitions} of {all_partitions} partitions, {shards} of {all_shards} shards"

    @property
    def coverage_ratio(self) -> float:
        """How much of the plan was read, 0 to 1: partitions and shards together."""
        (read, planned), (shards, all_shards) = self.partitions_read, self.shards_read
        return round((read + shards) / (planned + all_shards), 4)

    @property
    def previous_run_id(self) -> str | None:
        """The id of the newest run before this one."""
        return self.previous.run_id if self.previous else None

    @property
    def new_by_cause(self) -> dict[GradedCause, int]:
        """The number of kept findings that were not open before, by cause and severity."""
        new = (f.graded for f in self.findings if f.finding_id not in self.changes.known_ids)
        return dict(Counter(new))

    @property
    def graded(self) -> dict[GradedCause, int]:
        """The number of findings of each cause and severity."""
        counted: Counter[GradedCause] = Counter()
        for (each, _), n in self.cause_counts.items():
            counted[each] += n
        return dict(counted)

    def count(self, name: str) -> int:
        """Return the number of findings of a class or of a cause."""
        causes = causes_named(name)
        return sum(n for (each, _), n in self.cause_counts.items() if each.cause in causes)

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        totals = {kind: format_count(n) for kind, n in self.totals.items()}
        lost = format_count(self.count(FindingClass.LOST))
        kinds = (Kind.DUPLICATE, Kind.UNEXPECTED, Kind.MISMATCH, Kind.DISORDERED)
        others = ", ".join(f"{totals[kind]} {kind}" for kind in kinds)
        return (
            f"{format_count(self.counts.judged)} committed messages checked up to"
            f" {self.plan.snapshot.taken_at:%H:%M:%S}Z:"
            f" {totals[Kind.MISSING]} missing ({lost} lost), {others};"
            f" {self.coverage}{self._coverage_part()}"
            f"{self._unjudged_part()}{self._remaining_part()}"
        )

    def _coverage_part(self) -> str:
        """Return the part about findings that are not about records."""
        n = self.totals[Kind.COVERAGE]
        return f"; {format_count(n)} coverage findings" if n else ""

    def _unjudged_part(self) -> str:
        """Return the part about what counts neither as right nor as a finding."""
        counts = {
            "older than the oldest manifest, not judged as missing": self.counts.baseline,
            f"messages unverifiable ({self._unverifiable_places})": self.counts.unverifiable,
            "accepted by an operator, not counted": len(self.accepted),
        }
        return "".join(f"; {format_count(n)} {words}" for words, n in counts.items() if n)

    @property
    def _unverifiable_places(self) -> str:
        """The places of most unverifiable messages."""
        most = sorted(self.unverifiable.items(), key=lambda each: (-each[1], each[0]))
        shown = [f"{place_name(place)} {format_count(n)}" for place, n in most[:PLACES_SHOWN]]
        return ", ".join([*shown, "…"] if len(most) > PLACES_SHOWN else shown)

    def _remaining_part(self) -> str:
        """Return the part about findings of earlier runs that this run cannot see."""
        remaining = (each for each in self.findings if each.stored_id is not None)
        counts = Counter(map(self._reason_to_remain, remaining))
        return "".join(
            f"; {format_count(n)} still open from earlier runs: {why}"
            for why, n in sorted(counts.items())
        )

    def _reason_to_remain(self, finding: Finding) -> str:
        if finding.topic in self.plan.log.excluded:
            return "in excluded topics"
        if self.full_because is None:
            return "this run has read only what is new"
        if finding.rule.kind is Kind.MISSING:
            return "older than the manifests"
        return "no run can see them again" if finding.half_id is None else "records have expired"


def place_name(place: Partition) -> str:
    """Return the name of a partition, or of a whole topic, for people."""
    topic = place.topic or "a topic that is not known any more"
    return topic if place.number == WHOLE_TOPIC else f"{topic}/{place.number}"


def format_count(number: int) -> str:
    """Return a number with a space between its thousands."""
    return f"{number:,}".replace(",", " ")
