"""The consistent cut: log first, database last. Turns facts into a frozen plan and its gaps. Pure.

- A manifest below its shard's end is final. Its records were acknowledged before it, so they are
  below the high watermarks that are read afterwards.
- The snapshot is taken last, so it contains the decision of every visible record.

Therefore a missing record is judged by the positions of the manifests and an unexpected record by
the snapshot. Whatever is newer is not judged. No time decides anything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from xxhash import xxh64_hexdigest

from outbox.messages.manifest import START, Position
from outbox.messages.message_id import SHARDS
from outbox.reconciliation.log import Offsets, Partition, TopicFacts
from outbox.reconciliation.snapshot import RelayCut, SnapshotIdentity
from spark.cut.log_state import LogState

TRANSACTION_SECONDS: Final = 10
"""The relay's transaction timeout (transaction.timeout.ms)."""
STABLE_WAIT_SECONDS: Final = TRANSACTION_SECONDS + 20
"""How long a run waits for a transaction that was open at the cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The part of one partition to read: offsets ``start`` to ``end``, exclusive."""

    partition: Partition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A part of the plan that cannot be read to its end, with the reason."""

    cause: str
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
    """Faults of the partitions that were read: a truncated log, added partitions."""
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()
    """Recreated topics of which nothing older is missing from this run on."""
    former_ids: Mapping[str, str] = field(default_factory=dict)
    """The other recreated topics, with the id that each had: what they lack is missing."""
    before: LogState | None = None
    """The state of the log after the previous run, without the recreated topics."""
    excluded: frozenset[str] = frozenset()
    """Topics that the operator excludes: they are not part of the plan."""
    expired_shards: tuple[RelayCut, ...] = ()
    """The relay's rows of the shards whose last manifest has expired."""

    @property
    def unread_topics(self) -> frozenset[str]:
        """Topics not completely read up to the cut: none of their messages is judged as missing."""
        unread = (gap for gap in self.gaps if gap.cause != "UNVERIFIABLE/expired")
        return self.excluded | {gap.partition.topic for gap in unread}

    @property
    def starts(self) -> Mapping[Partition, int]:
        """Where the log of each partition begins that is read."""
        return {each.partition: each.start for each in self.records}

    @property
    def expired_topics(self) -> frozenset[str]:
        """Topics with records that expired before any run had read them."""
        expired = (gap for gap in self.gaps if gap.cause == "UNVERIFIABLE/expired")
        return frozenset(gap.partition.topic for gap in expired)

    @property
    def partition_counts(self) -> Mapping[str, int]:
        """The number of partitions of each topic at the cut."""
        known = {each.partition for each in self.records} | {each.partition for each in self.gaps}
        return Counter(each.topic for each in known)

    @property
    def compacted_topics(self) -> frozenset[str]:
        """Topics that keep only the last record of each key."""
        return frozenset(name for name, each in self.topics.items() if each.compacts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCut:
    """The position up to which a shard is judged: its last manifest below the cut.

    What is at or before ``baseline`` is not judged as missing: it is older than the manifests that
    Kafka still keeps, and no run since has left it to this one.
    """

    shard: int
    batch_no: int
    position: Position
    baseline: Position = START
    listed_from: Position = START
    """Where the manifests begin that Kafka still keeps; below it only the relay's position shows
    what was published."""
    unlisted: bool = False
    """Its chain of manifests began again: some of its batches are in no manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The start of a run: the cut of the previous run, or everything that is kept."""

    reason: str = "the first run"
    """Why everything is read; unused if the run continues another one."""
    run_id: str | None = None
    """The run that is continued; None reads everything."""
    cut_at: datetime | None = None

    @property
    def mode(self) -> str:
        """The kind of the run: full or incremental."""
        return "full" if self.run_id is None else "incremental"

    @property
    def sentence(self) -> str:
        """The start of the run, for people."""
        if self.cut_at is None:
            return f"full run: {self.reason}"
        return f"incremental run since {self.cut_at:%Y-%m-%dT%H:%M:%SZ}, the cut of {self.run_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that a run reads, frozen: no later step asks for the latest state again."""

    log: LogCut
    shards: tuple[ShardCut, ...]
    snapshot: SnapshotIdentity
    origin: Origin = field(default_factory=Origin)
    new_ranges: tuple[Range, ...] | None = None
    """The ranges of the data partitions that no run has read; None reads all of them."""

    @property
    def reads(self) -> tuple[Range, ...]:
        """The ranges of the data partitions that this run reads."""
        return self.log.records if self.new_ranges is None else self.new_ranges

    @property
    def run_id(self) -> str:
        """A hash of the plan: the same cut has the same run id."""
        return xxh64_hexdigest(json.dumps(self.as_json(), sort_keys=True).encode())

    @property
    def unlisted_shards(self) -> frozenset[int]:
        """Shards some of whose batches are in no manifest."""
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


def open_transactions(highs: Offsets, stable: Offsets) -> tuple[Partition, ...]:
    """Return the partitions with a transaction still open below their high watermark."""
    return tuple(
        partition
        for partition, high in highs.offsets.items()
        if stable.offsets.get(partition, high) < high
    )


def ranges(starts: Offsets, ends: Offsets) -> tuple[Range, ...]:
    """Return the range of each partition of which both the start and the end are known."""
    return tuple(
        Range(partition=partition, start=starts.offsets[partition], end=end)
        for partition, end in sorted(ends.offsets.items())
        if partition in starts.offsets
    )


def gaps(
    partitions: Collection[Partition], answers: Iterable[Offsets], stalled: Sequence[Partition]
) -> tuple[Gap, ...]:
    """Return what the cut lacks: partitions without an answer or with an open transaction."""
    answers = list(answers)
    errors: dict[Partition, str] = {}
    for answer in answers:
        errors.update(answer.errors)
    silent = [p for p in partitions if any(p not in answer.offsets for answer in answers)]
    unread = [
        Gap(cause="UNVERIFIABLE/not_read", partition=p, reason=errors.get(p, "no answer"))
        for p in sorted(set(silent))
    ]
    blocked = [
        Gap(
            cause="UNVERIFIABLE/open_transaction",
            partition=p,
            reason=f"a transaction stayed open for {STABLE_WAIT_SECONDS} s",
        )
        for p in sorted(set(stalled) - set(silent))
    ]
    return (*unread, *blocked)


def gone_manifests(topic: str, before: LogState, present: Collection[Partition]) -> tuple[Gap, ...]:
    """Return the partitions of the progress topic that are gone; before its first batch, none."""
    wanted = [Partition(topic, shard) for shard in range(SHARDS)] if before.positions else []
    return tuple(
        Gap(cause="UNVERIFIABLE/not_read", partition=each, reason="the partition is gone")
        for each in wanted
        if each not in present
    )


def shard_cuts(rows: Iterable[Mapping[str, Any]]) -> tuple[ShardCut, ...]:
    """Return the cut of each shard from the last and first manifests of ``manifests.cuts``."""
    return tuple(_listed_cut(row) for row in rows)


def expired_shards(listed: Iterable[RelayCut], manifests: Iterable[Range]) -> tuple[RelayCut, ...]:
    """Return the rows whose manifest is older than where the log of their shard begins."""
    starts = {each.partition.number: each.start for each in manifests}
    return tuple(row for row in listed if row.manifest_offset < starts.get(row.shard, 0))


def with_expired(cuts: Iterable[ShardCut], expired: Iterable[RelayCut]) -> tuple[ShardCut, ...]:
    """Return the cuts with those of shards that have no manifest left: baseline and position.

    They have published everything up to there, and nothing shows any more what that was.
    """
    by_manifests = {each.shard: each for each in cuts}
    by_row = {
        row.shard: ShardCut(shard=row.shard, batch_no=row.batch_no, position=at, baseline=at)
        for row in expired
        for at in [Position(row.xid, row.n)]
    }
    return tuple((by_row | by_manifests).values())


def judged_from_last_run(
    cuts: Iterable[ShardCut], judged: Mapping[int, Position]
) -> tuple[ShardCut, ...]:
    """Return the cuts with baselines where the last run ended, if manifests expired since unread.

    ``judged`` is by shard the position up to which the last run has judged.
    """
    return tuple(
        replace(
            each,
            listed_from=each.baseline,
            baseline=min(each.baseline, judged.get(each.shard, each.baseline)),
        )
        for each in cuts
    )


def _listed_cut(row: Mapping[str, Any]) -> ShardCut:
    return ShardCut(
        shard=row["shard"],
        batch_no=row["batch_no"],
        position=Position(row["to_xid"], row["to_n"]),
        baseline=Position(row["from_xid"], row["from_n"]),
        unlisted=row["restarted"],
    )
