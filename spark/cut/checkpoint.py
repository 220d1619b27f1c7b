"""The start of a run: the cut of the previous run, as long as both stores still continue it.

Otherwise the run reads everything, and the report names the reason. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import convert, to_builtins

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import StoredCheckpoint
from outbox.reconciliation.snapshot import SnapshotIdentity
from spark.cut.cut_plan import LogCut, Origin, Plan, Range, ShardCut
from spark.cut.log_state import LogState, state_of

VERSION: Final = 3
"""Version of the stored cut; a run that finds another version reads everything."""


class Mark(NamedTuple):
    """The last manifest of a shard; the next run reads it first, to verify that it still exists."""

    offset: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """The cut of the previous run."""

    run_id: str
    cut_at: datetime
    horizon: int
    """The first transaction id that had not started at the snapshot."""
    manifest_ends: Mapping[int, int]
    marks: Mapping[int, Mark]
    shards: Mapping[int, ShardCut]
    log: LogState = field(default_factory=LogState)
    """The state of the log after the run."""
    ahead: Mapping[Partition, int] = field(default_factory=dict)
    """By partition the first record that was ahead of the cut, where there was one."""
    newest: Mapping[int, int] = field(default_factory=dict)
    """By shard the last batch that could be in the log; the records ahead are of such batches."""
    too_many: bool = False
    """It found more than the database keeps, so the next run reads everything."""
    unread: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By topic that was not read up to the cut, then by shard: the last batch when it was."""

    @property
    def ends(self) -> Mapping[Partition, int]:
        """The end of each partition that was read."""
        return self.log.ends

    @property
    def origin(self) -> Origin:
        """The origin of a run that continues this one."""
        return Origin(run_id=self.run_id, cut_at=self.cut_at)

    @property
    def positions(self) -> Mapping[int, Position]:
        """The position up to which each shard was judged."""
        return {shard: cut.position for shard, cut in self.shards.items()}

    @property
    def batches(self) -> Mapping[int, int]:
        """The last batch of each shard that was judged."""
        return {shard: cut.batch_no for shard, cut in self.shards.items()}

    @property
    def anchors(self) -> Mapping[int, int]:
        """The offset of each shard's last manifest."""
        return {shard: mark.offset for shard, mark in self.marks.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRead:
    """A frozen plan, and the run that it continues."""

    plan: Plan
    marks: Mapping[int, Mark]
    previous: Previous | None = None


def continued_read(
    log: LogCut,
    cuts: Iterable[ShardCut],
    marks: Mapping[int, Mark],
    snapshot: SnapshotIdentity,
    previous: Previous,
) -> PlannedRead:
    """Freeze the plan of a run that reads what is new; ``cuts`` are those of the shards read."""
    plan = Plan(
        log=log,
        shards=continued_cuts(cuts, previous),
        snapshot=snapshot,
        origin=previous.origin,
        new_ranges=unread_ranges(log.records, {**previous.ends, **previous.ahead}),
    )
    return PlannedRead(plan=plan, marks={**previous.marks, **marks}, previous=previous)


def previous_of(chain: StoredCheckpoint | None) -> Previous | None:
    """Read a stored cut; None if there is none."""
    if chain is None or chain.cut["version"] != VERSION:
        return None
    log = state_of(chain.cut["log"])
    ahead = {Partition(topic, number): first for topic, number, first in chain.cut["ahead"]}
    plain = {**chain.cut, "run_id": chain.run_id, "log": {}, "ahead": {}}
    return replace(convert(plain, Previous, str_keys=True), log=log, ahead=ahead)


def cut_of(
    planned: PlannedRead,
    previous: Previous | None,
    log: LogState,
    newest: Mapping[int, int],
    ahead: Mapping[Partition, int],
    *,
    too_many: bool,
) -> dict[str, Any]:
    """Return the cut as it is stored.

    ``log``, ``newest``, ``ahead`` and ``too_many`` are those of ``Previous``, for the next run.
    """
    plan, marks = planned.plan, planned.marks
    manifests = {each.partition.number: each.end for each in plan.log.manifests}
    judged, unread = (previous.batches, previous.unread) if previous else ({}, {})
    cut = {
        "version": VERSION,
        "cut_at": plan.snapshot.taken_at,
        "horizon": _horizon(plan.snapshot.visible),
        "shards": {each.shard: each for each in plan.shards},
        "manifest_ends": {**(previous.manifest_ends if previous else {}), **manifests},
        "marks": marks,
        "unread": {topic: unread.get(topic, judged) for topic in plan.log.unread_topics},
        "log": log.as_json(),
        "newest": newest,
        "ahead": [[*partition, first] for partition, first in sorted(ahead.items())],
        "too_many": too_many,
    }
    stored: dict[str, Any] = to_builtins(cut, str_keys=True)
    return stored


def full_read_reason(previous: Previous, log: LogCut, snapshot: SnapshotIdentity) -> str | None:
    """Return why the run cannot continue the cut; None if it can."""
    if previous.too_many:
        return "the previous run found more than is kept"
    for topic in sorted(previous.unread.keys() - log.excluded):
        return f"{topic} was not read by the previous run"
    if _horizon(snapshot.visible) < previous.horizon:
        return "PostgreSQL has gone back to before the last cut"
    for each in log.records:
        if each.end < previous.ends.get(each.partition, each.start):
            return f"{each.partition.topic}/{each.partition.number} ends before the last cut"
    for gap in log.changes:
        if gap.cause == "LOG_CHANGED/truncated":
            return f"{gap.partition.topic}/{gap.partition.number} was truncated: {gap.reason}"
    return _unlisted_reason(previous, log)


def _unlisted_reason(previous: Previous, log: LogCut) -> str | None:
    for each in log.manifests:
        known = previous.manifest_ends.get(each.partition.number, each.start)
        if each.end < known:
            return f"the manifests of shard {each.partition.number} end before the last cut"
        if each.start > known:
            return f"manifests of shard {each.partition.number} expired before they were read"
    return None


def broken_chain_reason(
    previous: Previous, log: LogCut, rows: Iterable[Mapping[str, Any]]
) -> str | None:
    """Return why the manifests do not continue the cut; None if they do.

    ``rows`` are those of ``manifests.cuts``, read from the last known manifests on.
    """
    by_shard = {row["shard"]: row for row in rows}
    for each in log.manifests:
        shard = each.partition.number
        row, mark = by_shard.get(shard), previous.marks.get(shard)
        if mark is not None and each.start <= mark.offset:
            found = row["anchor_crc"] if row else None
            if found != mark.crc:
                return f"the last known manifest of shard {shard} is gone"
        known = previous.positions.get(shard)
        if known and row and row["lowest"] is not None and Position(*row["lowest"]) < known:
            return f"the history of shard {shard} has a new beginning"
    return None


def unread_ranges(ranges: Iterable[Range], ends: Mapping[Partition, int]) -> tuple[Range, ...]:
    """Return the parts of the ranges that no run has read yet."""
    return tuple(
        replace(each, start=max(each.start, ends.get(each.partition, each.start)))
        for each in ranges
    )


def ranges_ahead(ranges: Iterable[Range], previous: Previous) -> tuple[Range, ...]:
    """Return the parts of the ranges that begin with a record ahead of the previous cut."""
    return tuple(
        replace(each, end=min(each.end, previous.ends[each.partition]))
        for each in ranges
        if each.partition in previous.ahead
    )


def unread_manifests(log: LogCut, previous: Previous) -> tuple[Range, ...]:
    """Return the ranges of the unread manifests, each with the last read manifest before them."""
    topic = log.progress_topic
    known = {Partition(topic, shard): end for shard, end in previous.manifest_ends.items()}
    anchors = {Partition(topic, shard): offset for shard, offset in previous.anchors.items()}
    return unread_ranges(log.manifests, known | anchors)


def continued_cuts(cuts: Iterable[ShardCut], previous: Previous) -> tuple[ShardCut, ...]:
    """Return the cuts combined with the previous run's; no shard falls below its previous cut."""
    new = {each.shard: each for each in cuts}
    known = previous.shards
    return tuple(_continued_cut(new.get(s), known.get(s)) for s in sorted({*new, *known}))


def marks_of(rows: Iterable[Mapping[str, Any]]) -> Mapping[int, Mark]:
    """Return the last manifest of each shard that was read."""
    return {row["shard"]: Mark(row["offset"], row["crc"]) for row in rows}


def _continued_cut(new: ShardCut | None, known: ShardCut | None) -> ShardCut:
    if known is None or new is None:
        either = new or known
        assert either is not None
        return either
    batch_no, position = max((new.batch_no, new.position), (known.batch_no, known.position))
    return replace(
        new,
        batch_no=batch_no,
        position=position,
        baseline=known.baseline,
        listed_from=known.listed_from,
        unlisted=new.unlisted or known.unlisted,
    )


def _horizon(visible: str) -> int:
    """Return ``xmax`` of a snapshot as PostgreSQL writes it: ``xmin:xmax:xids``."""
    return int(visible.split(":")[1])
