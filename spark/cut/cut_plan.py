"""The consistent cut: log first, database last. Facts in, a frozen plan or its gaps out. Pure.

A manifest below its shard's end is decided, its records were acknowledged before it and so lie
below the high watermarks that are asked afterwards; the snapshot, taken last, holds the decision of
every record that can be seen. So missing is judged by the manifests' positions and unexpected by
the snapshot, and what is newer is not judged at all. No time decides anything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from xxhash import xxh64_hexdigest

from outbox.messages.manifest import START, Position
from outbox.reconciliation.log import Offsets, Partition, TopicFacts
from outbox.reconciliation.snapshot import RelayCut, SnapshotIdentity
from spark.cut.time_bounds import EVERYTHING, TimeBounds
from spark.report.language import ENGLISH, Words

if TYPE_CHECKING:
    from spark.cut.log_history import LogState

TRANSACTION_SECONDS: Final = 10
"""The relay's transaction timeout (reliability of the relay: transaction.timeout.ms)."""
STABLE_WAIT_SECONDS: Final = TRANSACTION_SECONDS + 20
"""How long a transaction that was open at the cut is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is read of one partition: offsets ``start`` to ``end``, exclusive."""

    partition: Partition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A part of the plan that cannot be read to its end, and why."""

    finding_class: str
    partition: Partition
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCut:
    """The cut of the log, frozen before the snapshot is taken."""

    progress_topic: str
    manifests: tuple[Range, ...]
    records: tuple[Range, ...]
    gaps: tuple[Gap, ...] = ()
    changes: tuple[Gap, ...] = ()
    """What is wrong with what was read: a log cut off, partitions added."""
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()
    """Topics made anew that this run begins with."""
    window: TimeBounds = EVERYTHING
    first_manifests: Mapping[int, int] | None = None
    """By shard, where the manifests of the window begin; None judges all of them."""
    before: LogState | None = None
    """What the run before left behind, without the accepted topics."""

    @property
    def unread_topics(self) -> frozenset[str]:
        """Topics of which something up to the cut was not read: nothing of them is missing."""
        unread = (gap for gap in self.gaps if gap.finding_class != "RETENTION_GAP")
        return frozenset(gap.partition.topic for gap in unread)

    @property
    def expired_topics(self) -> frozenset[str]:
        """Topics of which something expired before any run had read it."""
        expired = (gap for gap in self.gaps if gap.finding_class == "RETENTION_GAP")
        return frozenset(gap.partition.topic for gap in expired)

    @property
    def partition_counts(self) -> Mapping[str, int]:
        """How many partitions each topic has at the cut."""
        known = {each.partition for each in self.records} | {each.partition for each in self.gaps}
        return Counter(each.topic for each in known)

    @property
    def compacted_topics(self) -> frozenset[str]:
        """Topics that keep the last record of a key alone."""
        return frozenset(name for name, each in self.topics.items() if each.compacts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCut:
    """Up to where a shard is judged: its last manifest below the cut.

    ``baseline`` is where the manifests that Kafka still keeps begin; what lies at or before it is
    not judged as missing.
    """

    shard: int
    batch_no: int
    position: Position
    baseline: Position = START
    manifests: int = 0
    unlisted: bool = False
    """Some of its batches are in no manifest: it publishes at least once, or has done so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a run begins: at the cut of the run before it, or with everything that is kept."""

    reason: str = "the first run"
    """Why everything is read; of no meaning when the run continues another one."""
    run_id: str | None = None
    """The run that is continued; None reads everything."""
    cut_at: datetime | None = None

    @property
    def mode(self) -> str:
        """Which kind of run this is."""
        return "full" if self.run_id is None else "incremental"

    @property
    def sentence(self) -> str:
        """The same for people."""
        return self.told(ENGLISH)

    def told(self, t: Words) -> str:
        """Return the same for people, in these words."""
        if self.cut_at is None:
            return t("full run: {reason}", reason=t(self.reason))
        since = f"{self.cut_at:%Y-%m-%dT%H:%M:%SZ}"
        return t("incremental run since {since}, the cut of {run}", since=since, run=self.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a run reads, frozen: from here on nothing asks for the latest again."""

    log: LogCut
    shards: tuple[ShardCut, ...]
    snapshot: SnapshotIdentity
    origin: Origin = field(default_factory=Origin)
    unread: tuple[Range, ...] | None = None
    """What no run has read of the data partitions; None is all of it."""

    @property
    def reads(self) -> tuple[Range, ...]:
        """What this run reads of the data partitions."""
        return self.log.records if self.unread is None else self.unread

    @property
    def run_id(self) -> str:
        """A hash of the plan: the same cut is the same run."""
        return xxh64_hexdigest(json.dumps(self.as_json(), sort_keys=True).encode())

    @property
    def cut_at(self) -> datetime:
        """Up to when the run judges; no verdict needs it."""
        return self.log.window.cut_at(self.snapshot.taken_at)

    @property
    def unlisted_shards(self) -> frozenset[int]:
        """Shards that publish at least once, or have done so."""
        return frozenset(each.shard for each in self.shards if each.unlisted)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as it is stored and reported."""
        return {
            "mode": self.origin.mode,
            "since": self.origin.run_id,
            "sources": [{"name": "", "snapshot": self.snapshot.visible}],
            "shards": [
                {
                    "shard": cut.shard,
                    "batch_no": cut.batch_no,
                    "position": list(cut.position),
                    "baseline": list(cut.baseline),
                }
                for cut in sorted(self.shards, key=lambda cut: cut.shard)
            ],
            "partitions": [
                {"topic": r.partition.topic, "partition": r.partition.number}
                | {"start": r.start, "end": r.end}
                for r in sorted(self.reads, key=lambda r: r.partition)
            ],
        }


def waiting(highs: Offsets, stable: Offsets) -> tuple[Partition, ...]:
    """Return the partitions with a transaction still open below their high watermark."""
    return tuple(
        partition
        for partition, high in highs.offsets.items()
        if stable.offsets.get(partition, high) < high
    )


def ranges(starts: Offsets, ends: Offsets) -> tuple[Range, ...]:
    """Return what can be read of each partition that answered both questions."""
    return tuple(
        Range(partition=partition, start=starts.offsets[partition], end=end)
        for partition, end in sorted(ends.offsets.items())
        if partition in starts.offsets
    )


def gaps(
    partitions: Collection[Partition], answers: Iterable[Offsets], stuck: Sequence[Partition]
) -> tuple[Gap, ...]:
    """Return what is missing of a complete cut: partitions without answer, transactions open."""
    answers = list(answers)
    errors: dict[Partition, str] = {}
    for answer in answers:
        errors.update(answer.errors)
    silent = [p for p in partitions if any(p not in answer.offsets for answer in answers)]
    unread = [
        Gap(finding_class="NOT_READ", partition=p, reason=errors.get(p, "no answer"))
        for p in sorted(set(silent))
    ]
    blocked = [
        Gap(
            finding_class="LSO_STUCK",
            partition=p,
            reason=f"a transaction stayed open for {STABLE_WAIT_SECONDS} s",
        )
        for p in sorted(set(stuck) - set(silent))
    ]
    return (*unread, *blocked)


def shard_cuts(
    rows: Iterable[Mapping[str, Any]], unlisted: Iterable[RelayCut] = ()
) -> tuple[ShardCut, ...]:
    """Return the cut of each shard from the last and first manifests of ``manifests.cuts``.

    Where the relay lists no batches its own row tells how far it has come.
    """
    by_manifests = {row["shard"]: _listed_cut(row) for row in rows}
    by_row = {row.shard: _unlisted_cut(row, by_manifests.get(row.shard)) for row in unlisted}
    return tuple((by_manifests | by_row).values())


def begun(cuts: Iterable[ShardCut], ends: Mapping[int, Position]) -> tuple[ShardCut, ...]:
    """Return the cuts with what ends there or earlier before the baseline."""
    return tuple(
        replace(each, baseline=max(each.baseline, ends.get(each.shard, START))) for each in cuts
    )


def _unlisted_cut(row: RelayCut, listed: ShardCut | None) -> ShardCut:
    cut = listed or ShardCut(shard=row.shard, batch_no=0, position=START)
    batch_no, position = max((row.batch_no, Position(row.xid, row.n)), (cut.batch_no, cut.position))
    return replace(cut, batch_no=batch_no, position=position, unlisted=True)


def _listed_cut(row: Mapping[str, Any]) -> ShardCut:
    return ShardCut(
        shard=row["shard"],
        batch_no=row["batch_no"],
        position=Position(row["to_xid"], row["to_n"]),
        baseline=Position(row["from_xid"], row["from_n"]),
        manifests=row["manifests"],
        unlisted=row["restarted"],
    )
