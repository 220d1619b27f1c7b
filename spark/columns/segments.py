"""The commit log divided into segments, before its arrays are exploded.

A segment is a run of commits of one row that have the same standing and are in the same batch of
the relay. There are few more segments than rows and batches. So the standing, the counts and the
expected slots are computed per segment, at a cost far below that of one row per message.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.columns.slot import slot_at

IN_FLIGHT: Final = "in_flight"
JUDGED: Final = "judged"
BASELINE: Final = "baseline"
"""Standing of a commit: above its shard's cut, at or below it, older than all kept manifests."""

FLUSH: Final = ("before", "xid", "size", "committed_at", "seen", "base", "cut")
BATCH: Final = ("from_rank", "to_rank", "batch_no")
"""Columns that a segment takes from its row and from its batch; the sort columns come first."""


def segments(flushes: DataFrame, batches: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the segments that no earlier run has judged.

    Where two batches claim a commit, the batch that begins later gets it. A wrong claim gives a
    slot that contains no such record.
    """
    shard = Window.partitionBy("shard").orderBy("rank")
    till_here = shard.rowsBetween(Window.unboundedPreceding, 0)
    divided = _edges(_with_cuts(flushes, cuts), batches).select(
        "shard",
        "rank",
        F.last("flush", ignorenulls=True).over(till_here).alias("flush"),
        F.last("batch", ignorenulls=True).over(till_here).alias("batch"),
        F.lead("rank").over(shard).alias("next"),
    )
    row_end = F.col("flush.before") + F.col("flush.size")
    skip = F.col("rank") - F.col("flush.before")
    inside = F.col("rank") < F.col("batch.to_rank")
    return divided.where((F.col("rank") < row_end) & (skip >= F.col("flush.seen"))).select(
        "shard",
        "flush.xid",
        "flush.committed_at",
        "rank",
        skip.cast("int").alias("skip"),
        (F.least(row_end, "next") - F.col("rank")).cast("int").alias("size"),
        _standing(skip).alias("standing"),
        F.when(inside, F.col("batch.batch_no")).alias("batch_no"),
        F.when(inside, F.col("rank") - F.col("batch.from_rank")).alias("index"),
    )


def open_commits(commits: DataFrame, segments: DataFrame) -> DataFrame:
    """Return one row per committed message: id, digest, position, rank, standing, slot."""
    joined = commits.select("shard", "xid", "half_ids", "content_digests").join(
        segments, ["shard", "xid"]
    )
    each = joined.select("*", F.posexplode(_digests()).alias("place", "digest"))
    at = F.col("skip") + F.col("place")
    return each.select(
        F.get("half_ids", at).alias("half_id"),
        "digest",
        "shard",
        "xid",
        (at + 1).alias("n"),
        "committed_at",
        (F.col("rank") + F.col("place") + 1).alias("rank"),
        "standing",
        slot_at(F.col("batch_no"), F.col("index") + F.col("place")).alias("slot"),
    )


def with_standing(commits: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the messages with their standing at the cut of their shard."""
    return commits.join(F.broadcast(cuts), "shard", "left").withColumn(
        "standing", _standing_at_cut()
    )


def standings() -> dict[str, Column]:
    """Return the numbers of commits by standing, as aggregates of segments."""
    standing, none = F.col("standing"), F.lit(0)
    return {
        each: F.coalesce(F.sum(F.when(standing == each, F.col("size"))), none)
        for each in (JUDGED, IN_FLIGHT, BASELINE)
    }


def _digests() -> Column:
    """Return a segment's digests, one per commit even where the row has too few of them.

    The digests are exploded, not the ids, because the bucket checksums do not read the ids.
    """
    end = F.col("skip") + F.col("size")
    own = F.slice("content_digests", F.col("skip") + 1, F.col("size"))
    absent = F.array_repeat(F.lit(None).cast("bigint"), F.col("size"))
    return F.when(F.size("content_digests") >= end, own).otherwise(absent)


def _with_cuts(flushes: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the rows with the number of their commits up to each position of the cuts."""
    joined = flushes.where("size > 0").join(F.broadcast(cuts), "shard", "left")
    return joined.select(
        "shard",
        *FLUSH[:4],
        *(_up_to(f"{name}_xid", f"{name}_n").alias(name) for name in FLUSH[4:]),
    )


def _up_to(end_xid: str, end_n: str) -> Column:
    within = F.least(F.col(end_n), F.col("size"))
    before = F.col("xid") < F.col(end_xid)
    return F.when(before, F.col("size")).when(F.col("xid") == F.col(end_xid), within).otherwise(0)


def _edges(flushes: DataFrame, batches: DataFrame) -> DataFrame:
    """Return the ranks at which a segment begins or ends, with the row or batch beginning there."""
    inside = (
        F.when((F.col(each) > 0) & (F.col(each) < F.col("size")), F.col(each)) for each in FLUSH[4:]
    )
    ends = F.explode(F.array_compact(F.array(F.lit(0), *inside))).alias("end")
    of_rows = flushes.select("shard", F.struct(*FLUSH).alias("flush"), ends).select(
        "shard", (F.col("flush.before") + F.col("end")).alias("rank"), "flush"
    )
    claimed = batches.where("in_turn AND whole")
    begins = (F.col("from_rank").alias("rank"), F.struct(*BATCH).alias("batch"))
    of_batches = claimed.select("shard", *begins)
    ends_of_batches = claimed.select("shard", F.col("to_rank").alias("rank"))
    every = of_rows.unionByName(of_batches, allowMissingColumns=True).unionByName(
        ends_of_batches, allowMissingColumns=True
    )
    return every.groupBy("shard", "rank").agg(
        F.max("flush").alias("flush"), F.max("batch").alias("batch")
    )


def _standing(skip: Column) -> Column:
    before, judged = skip < F.col("flush.base"), skip < F.col("flush.cut")
    return F.when(before, BASELINE).when(judged, JUDGED).otherwise(IN_FLIGHT)


def _standing_at_cut() -> Column:
    position = (F.col("xid"), F.col("n"))
    judged = _at_most(*position, F.col("cut_xid"), F.col("cut_n"))
    before = _at_most(*position, F.col("base_xid"), F.col("base_n"))
    return F.when(before, BASELINE).when(judged, JUDGED).otherwise(IN_FLIGHT)


def _at_most(xid: Column, n: Column, end_xid: Column, end_n: Column) -> Column:
    return F.coalesce((xid < end_xid) | ((xid == end_xid) & (n <= end_n)), F.lit(False))
