"""Reads what a run judges: manifests first, which freeze the plan, then commits and records.

A run that continues another one reads what is new and takes over what was left open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.errors import OutboxError
from outbox.messages.manifest import Position
from outbox.reconciliation.snapshot import RelayCut, SnapshotIdentity
from spark.columns import commit_rank, manifests, schemas, segments, slot
from spark.columns.frames import Frames
from spark.columns.staging import staged
from spark.compare import placement
from spark.cut import cut_plan
from spark.cut.carry_over import COMMIT, LISTING, RECORD, Carried, unexpired
from spark.cut.checkpoint import (
    Mark,
    Previous,
    continued,
    marks_of,
    unread,
    unread_manifests,
    why_broken,
    why_full,
)
from spark.cut.sources import Sources
from spark.report.progress import Progress


class SnapshotMismatch(OutboxError):
    """Spark read the database in another snapshot than the plan's; nothing it saw counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Where from and where to a run reads."""

    sources: Sources
    progress: Progress
    stage_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A frozen plan, the manifests it rests on, and the run it continues."""

    plan: cut_plan.Plan
    manifests: DataFrame
    marks: Mapping[int, Mark]
    previous: Previous | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """The commit log with what lies over it."""

    segments: DataFrame
    batches: DataFrame
    commits: DataFrame


def planned(
    reader: Reader,
    log: cut_plan.LogCut,
    unlisted: Sequence[RelayCut],
    snapshot: SnapshotIdentity,
    previous: Previous | None,
    reason: str,
) -> Planned:
    """Read the manifests and freeze the plan; ``reason`` tells why there is no ``previous``.

    What does not continue the run before is read whole.
    """
    if previous is None:
        return planned_whole(reader, log, unlisted, snapshot, reason)
    broken = why_full(previous, log, snapshot)
    if broken is None:
        listed, rows = _manifests(reader, unread_manifests(log, previous), previous.anchors)
        broken = why_broken(previous, log, rows)
    if broken is not None:
        return planned_whole(reader, log, unlisted, snapshot, broken)
    plan = cut_plan.Plan(
        log=log,
        shards=continued(cut_plan.shard_cuts(rows, unlisted), previous),
        snapshot=snapshot,
        origin=previous.origin,
        unread=unread(log.records, previous.ends),
    )
    marks = marks_of(rows, previous)
    return Planned(plan=plan, manifests=listed, marks=marks, previous=previous)


def frames_of(reader: Reader, planned: Planned) -> Frames:
    """Read both sides once and lay the cuts beside them."""
    plan, previous = planned.plan, planned.previous
    cuts = schemas.frame_of(
        reader.sources.spark_session, _cut_rows(plan, previous), schemas.SHARD_CUTS
    )
    rows = previous.carried if previous else ()
    carried = Carried(spark_session=reader.sources.spark_session, rows=rows)
    commits = _commits(reader, plan, previous)
    with reader.progress.stage("lay batches over commits"):
        laid = laid_over(planned.manifests, commits, cuts, reader.stage_uri)
    records, size = _records(reader, plan)
    kept = carried.beside(records, RECORD)
    return Frames(
        manifests=planned.manifests,
        listings=carried.beside(manifests.entries(planned.manifests), LISTING).drop("carried"),
        segments=laid.segments,
        batches=laid.batches,
        commits=carried_beside(carried, laid.commits, cuts),
        records=placed(unexpired(kept, plan.log) if rows else kept, cuts),
        size=size,
    )


def laid_over(listed: DataFrame, commits: DataFrame, cuts: DataFrame, stage_uri: str) -> Laid:
    """Lay the batches of the relay and the cuts over the commit log."""
    batches = staged(commit_rank.batches(listed, commits), f"{stage_uri}/batches")
    cut_up = segments.segments(commit_rank.flushes(commits), batches, cuts)
    cut_up = staged(cut_up, f"{stage_uri}/segments")
    return Laid(segments=cut_up, batches=batches, commits=segments.opened(commits, cut_up))


def placed(records: DataFrame, cuts: DataFrame) -> DataFrame:
    """Lay the cuts beside the records: which are ahead, and which name a slot up to the cut."""
    beside = slot.slotted(placement.placed(slot.identified(records), cuts))
    return beside.withColumn("ahead", F.col("ahead") & ~F.col("carried"))


def carried_beside(carried: Carried, commits: DataFrame, cuts: DataFrame) -> DataFrame:
    """Lay the carried commits, which are in no slot any more, beside those that are new."""
    both = carried.beside(commits, COMMIT)
    if not carried.rows:
        return both
    return both.where("NOT carried").unionByName(
        placement.standing(both.where("carried").drop("standing"), cuts).select(both.columns)
    )


def planned_whole(
    reader: Reader,
    log: cut_plan.LogCut,
    unlisted: Sequence[RelayCut],
    snapshot: SnapshotIdentity,
    reason: str,
) -> Planned:
    """Freeze a plan that reads everything; ``reason`` tells why."""
    listed, rows = _manifests(reader, log.manifests, {})
    shards = cut_plan.shard_cuts(rows, unlisted)
    if log.first_manifests is not None:
        before = manifests.ends_before(listed, log.first_manifests).collect()
        ends = {row["shard"]: Position(row["to_xid"], row["to_n"]) for row in before}
        shards = cut_plan.begun(shards, ends)
    origin = cut_plan.Origin(reason=reason)
    plan = cut_plan.Plan(log=log, shards=shards, snapshot=snapshot, origin=origin)
    return Planned(plan=plan, manifests=listed, marks=marks_of(rows))


def _manifests(
    reader: Reader, ranges: Sequence[cut_plan.Range], anchors: Mapping[int, int]
) -> tuple[DataFrame, list[dict[str, Any]]]:
    with reader.progress.stage("read manifests") as stage:
        listed = staged(reader.sources.read_manifests(ranges), f"{reader.stage_uri}/manifests")
        rows = [row.asDict() for row in manifests.cuts(listed, anchors).collect()]
        stage.rows = sum(row["manifests"] for row in rows)
    return listed, rows


def _commits(reader: Reader, plan: cut_plan.Plan, previous: Previous | None) -> DataFrame:
    after = previous.positions if previous else {}
    with reader.progress.stage("read commits") as stage:
        read = reader.sources.read_commits(plan.snapshot, after)
        commits = staged(read, f"{reader.stage_uri}/commits")
        ends = (F.min("visible").alias("first"), F.max("visible").alias("last"))
        (seen,) = commits.agg(F.sum("size").alias("ids"), *ends).collect()
        _verify_snapshot({seen["first"], seen["last"]} - {None}, plan)
        stage.rows = seen["ids"] or 0
    return commits


def _records(reader: Reader, plan: cut_plan.Plan) -> tuple[DataFrame, int]:
    with reader.progress.stage("read records") as stage:
        records = staged(reader.sources.read_records(plan.reads), f"{reader.stage_uri}/records")
        stage.rows = size = records.count()
    return records, size


def _verify_snapshot(seen: Collection[str], plan: cut_plan.Plan) -> None:
    """Refuse rows that were not read in the plan's snapshot, which Spark would not notice."""
    for each in seen:
        if each != plan.snapshot.visible:
            raise SnapshotMismatch(
                f"Spark read the commit log at {each}, not at {plan.snapshot.visible}"
            )


def _cut_rows(plan: cut_plan.Plan, previous: Previous | None) -> list[dict[str, int]]:
    seen = previous.positions if previous else {}
    return [
        {
            "shard": each.shard,
            "cut_batch": each.batch_no,
            "cut_xid": each.position.xid,
            "cut_n": each.position.n,
            "base_xid": each.baseline.xid,
            "base_n": each.baseline.n,
        }
        | ({"seen_xid": p.xid, "seen_n": p.n} if (p := seen.get(each.shard)) else {})
        for each in plan.shards
    ]
