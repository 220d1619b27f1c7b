"""Reads what a run judges: the manifests, which freeze the plan, then commits and records.

A run that continues another one reads what is new, and what was ahead of the other one's cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.errors import OutboxError
from outbox.messages.manifest import Position
from outbox.reconciliation.snapshot import RelayProgress, SnapshotIdentity
from spark.columns import commit_rank, manifests, schemas, segments, slot
from spark.columns.frames import Frames
from spark.columns.staging import stage_counted, stage_frame
from spark.cut import cut_plan, log_history
from spark.cut.checkpoint import (
    PlannedRead,
    Previous,
    broken_chain_reason,
    continued_read,
    full_read_reason,
    marks_of,
    ranges_ahead,
    unread_manifests,
    unread_ranges,
)
from spark.cut.shard_spans import newest_batches
from spark.cut.sources import Sources
from spark.progress import Progress


class SnapshotMismatch(OutboxError):
    """Spark read the database in another snapshot than the plan's; its rows are not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The sources and the stage of a run."""

    sources: Sources
    progress: Progress
    stage_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLayout:
    """The commit log, divided by batches and cuts."""

    segments: DataFrame
    batches: DataFrame
    commits: DataFrame
    standings: Mapping[str, int]


def plan_read(
    reader: Reader,
    log: cut_plan.LogCut,
    snapshot: SnapshotIdentity,
    previous: Previous | None,
    reason: str,
) -> tuple[PlannedRead, DataFrame]:
    """Freeze the plan and return the manifests; ``reason`` is why there is no ``previous`` run.

    If the stores do not continue the previous run, everything is read.
    """
    if previous is None:
        return plan_full_read(reader, log, snapshot, reason)
    broken = log_history.recreation_reason(log) or full_read_reason(previous, log, snapshot)
    if broken is None:
        listed, rows = _manifests(reader, unread_manifests(log, previous), previous.anchors)
        broken = broken_chain_reason(previous, log, rows)
    if broken is not None:
        return plan_full_read(reader, log, snapshot, broken)
    cuts, marks = cut_plan.shard_cuts(rows), marks_of(rows)
    return continued_read(log, cuts, marks, snapshot, previous), listed


def read_frames(
    reader: Reader,
    planned: PlannedRead,
    listed: DataFrame,
    progress: Mapping[int, RelayProgress],
    known: Previous | None = None,
) -> Frames:
    """Read both sides once and add the columns of the cuts; ``progress`` is by shard.

    ``known`` is the previous run, if everything is read though both stores continue it.
    """
    plan, previous = planned.plan, planned.previous
    newest = newest_batches(plan.shards, progress)
    cuts = _cuts(reader, plan.shards, newest, previous.positions if previous else {})
    read = _commits(reader, plan, previous)
    with reader.progress.stage("lay batches over commits"):
        layout = commit_layout(listed, read, cuts, reader.stage_uri)
    records, size = _records(reader, planned)
    return Frames(
        manifests=listed,
        listings=manifests.entries(listed),
        segments=layout.segments,
        batches=layout.batches,
        commits=layout.commits,
        records=slot.with_slot(
            slot.with_ahead(slot.with_half_id(_with_again(reader, records, plan, known)), cuts)
        ),
        size=size,
        standings=layout.standings,
        stage_uri=reader.stage_uri,
    )


def commit_layout(
    listed: DataFrame, commits: DataFrame, cuts: DataFrame, stage_uri: str
) -> CommitLayout:
    """Divide the commit log by the batches of the relay and by the cuts."""
    batches = stage_frame(commit_rank.batches(listed, commits), f"{stage_uri}/batches")
    divided = segments.segments(commit_rank.flushes(commits), batches, cuts)
    divided, standings = stage_counted(divided, f"{stage_uri}/segments", **segments.standings())
    return CommitLayout(
        segments=divided,
        batches=batches,
        commits=segments.open_commits(commits, divided),
        standings=standings,
    )


def plan_full_read(
    reader: Reader,
    log: cut_plan.LogCut,
    snapshot: SnapshotIdentity,
    reason: str,
) -> tuple[PlannedRead, DataFrame]:
    """Freeze a plan that reads everything, for this reason."""
    listed, rows = _manifests(reader, log.manifests, {})
    shards = cut_plan.with_expired(cut_plan.shard_cuts(rows), log.expired_shards)
    judged = log.before.positions if log.before else {}
    shards = cut_plan.judged_from_last_run(shards, judged)
    origin = cut_plan.Origin(reason=reason)
    plan = cut_plan.Plan(log=log, shards=shards, snapshot=snapshot, origin=origin)
    return PlannedRead(plan=plan, marks=marks_of(rows)), listed


def _manifests(
    reader: Reader, ranges: Sequence[cut_plan.Range], anchors: Mapping[int, int]
) -> tuple[DataFrame, list[dict[str, Any]]]:
    with reader.progress.stage("read manifests") as stage:
        listed = stage_frame(reader.sources.read_manifests(ranges), f"{reader.stage_uri}/manifests")
        rows = [row.asDict() for row in manifests.cuts(listed, anchors).collect()]
        stage.rows = sum(row["manifests"] for row in rows)
    return listed, rows


def _commits(reader: Reader, plan: cut_plan.Plan, previous: Previous | None) -> DataFrame:
    after = previous.positions if previous else {}
    with reader.progress.stage("read commits") as stage:
        commits, seen = stage_counted(
            reader.sources.read_commits(plan.snapshot, after),
            f"{reader.stage_uri}/commits",
            ids=F.sum("size"),
            first=F.min("visible"),
            last=F.max("visible"),
        )
        _verify_snapshot({seen["first"], seen["last"]} - {None}, plan)
        stage.rows = seen["ids"] or 0
    return commits


def _records(reader: Reader, planned: PlannedRead) -> tuple[DataFrame, int]:
    """Read the records; those ahead of the previous cut are read again, the others there are not.

    ``size`` is the number of all.
    """
    plan, previous, sources = planned.plan, planned.previous, reader.sources
    with reader.progress.stage("read records") as stage:
        read = sources.read_records(unread_ranges(plan.reads, previous.ends if previous else {}))
        if previous is not None and previous.ahead:
            again = sources.read_records(ranges_ahead(plan.reads, previous))
            cuts = _cuts(reader, previous.shards.values(), previous.newest, {})
            ahead = slot.with_ahead(slot.with_half_id(again), cuts).where("ahead")
            read = read.unionByName(ahead.select(read.columns))
        uri = f"{reader.stage_uri}/records"
        records, seen = stage_counted(read, uri, rows=F.count("*"))
        stage.rows = size = seen["rows"]
    return records, size


def _with_again(
    reader: Reader, records: DataFrame, plan: cut_plan.Plan, known: Previous | None
) -> DataFrame:
    """Mark the records that were written again since the ``known`` run."""
    if known is None:
        return records.withColumn("again", F.lit(False))
    session, batches = reader.sources.spark_session, known.batches
    listed = batches.keys() - plan.unlisted_shards
    known_batches = [{"shard": each, "known_batch": batches[each]} for each in listed]
    known_ends = [
        {"topic": topic, "partition": number, "known_end": end}
        for (topic, number), end in known.ends.items()
        if topic not in known.unread
    ]
    return slot.with_again(
        records,
        schemas.frame_of(session, known_batches, schemas.KNOWN_BATCHES),
        schemas.frame_of(session, known_ends, schemas.KNOWN_ENDS),
    )


def _verify_snapshot(seen: Collection[str], plan: cut_plan.Plan) -> None:
    """Refuse rows that were not read in the plan's snapshot; Spark does not check that."""
    for each in seen:
        if each != plan.snapshot.visible:
            raise SnapshotMismatch(
                f"Spark read the commit log at {each}, not at {plan.snapshot.visible}"
            )


def _cuts(
    reader: Reader,
    shards: Iterable[cut_plan.ShardCut],
    newest: Mapping[int, int],
    seen: Mapping[int, Position],
) -> DataFrame:
    """Return the rows of ``schemas.SHARD_CUTS``; ``seen`` is what the previous run has judged."""
    cuts = {
        each.shard: {
            "shard": each.shard,
            "cut_batch": each.batch_no,
            "cut_xid": each.position.xid,
            "cut_n": each.position.n,
            "base_xid": each.baseline.xid,
            "base_n": each.baseline.n,
        }
        | ({"seen_xid": p.xid, "seen_n": p.n} if (p := seen.get(each.shard)) else {})
        for each in shards
    }
    rows = [
        cuts.get(shard, {"shard": shard}) | {"newest_batch": batch_no}
        for shard, batch_no in newest.items()
    ]
    return schemas.frame_of(reader.sources.spark_session, rows, schemas.SHARD_CUTS)
