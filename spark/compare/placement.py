"""The comparison as named DataFrame -> DataFrame steps: count, compare, collect the evidence.

Commits and records are joined on the half id. What is exactly once in both, with equal digests, is
clean and never leaves Spark. Everything else is a suspect, whose evidence is collected for
``classify``.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.columns.segments import BASELINE, IN_FLIGHT, JUDGED

COPIES_SHOWN: Final = 20
"""Above this number a suspect's records are counted, not listed."""
COPY: Final = (
    *("topic", "partition", "offset", "published_at", "message_id", "shard", "batch_no"),
    *("index", "redriven", "repair", "digest", "key_hash", "ahead"),
)
"""Columns of a record in the evidence; the place comes first, for sorting."""
LISTING: Final = ("batch_no", "index", "status", "message_id", "shard")


def count_copies(records: DataFrame) -> DataFrame:
    """Return one row per half id: its judged copies, those ahead, and the range of its digests."""
    judged = ~F.col("ahead")
    return (
        records.where(F.col("half_id").isNotNull())
        .groupBy("half_id")
        .agg(
            F.count(F.when(judged, True)).alias("copies"),
            F.count(F.when(F.col("ahead"), True)).alias("ahead"),
            F.min(F.when(judged, F.col("digest"))).alias("low_digest"),
            F.max(F.when(judged, F.col("digest"))).alias("high_digest"),
        )
    )


def suspects(commits: DataFrame, counts: DataFrame) -> DataFrame:
    """Return every half id whose commit and records are not exactly one clean pair.

    A judged commit without a record is suspect; one in flight or before the baseline is not. A
    record ahead of the cut excuses a missing record, but never a missing commit.
    """
    return unsettled(commits, counts).where("suspect").drop("suspect")


def unsettled(commits: DataFrame, counts: DataFrame) -> DataFrame:
    """Return every half id that is not settled: the next run must know it.

    A message is settled if it is at or below the cut and has exactly one record, with the equal
    digest. A commit in flight without a record is not open.
    """
    both = commits.join(counts, "half_id", "full_outer")
    return both.where(~(_settled() | _untouched())).select(
        "half_id",
        (~_clean()).alias("suspect"),
        F.col("standing"),
        F.col("digest").alias("committed_digest"),
        "xid",
        "n",
        "committed_at",
        F.coalesce("copies", F.lit(0)).alias("copies"),
        F.coalesce("ahead", F.lit(0)).alias("ahead"),
    )


def evidence(
    suspect: DataFrame,
    records: DataFrame,
    entries: DataFrame,
    superseded: DataFrame | None = None,
) -> DataFrame:
    """Return the suspects with the records that have their id and the manifests that list it.

    ``superseded`` are the ids of those whose record compaction may have removed.
    """
    marked = suspect.withColumn("superseded", F.lit(False))
    if superseded is not None:
        marks = superseded.withColumn("superseded", F.lit(True))
        marked = suspect.join(marks, "half_id", "left")
    return (
        marked.join(_copies_of(suspect, records), "half_id", "left")
        .join(_listings_of(suspect, entries), "half_id", "left")
        .orderBy("half_id")
    )


def late_by_shard(segments: DataFrame, grace_seconds: int, cut_at: Column) -> DataFrame:
    """Return per shard the commits in flight, how many of them are overdue, and the oldest."""
    late = F.col("committed_at") < cut_at - F.make_dt_interval(secs=F.lit(grace_seconds))
    return (
        segments.where(F.col("standing") == IN_FLIGHT)
        .groupBy("shard")
        .agg(
            F.sum("size").alias("in_flight"),
            F.sum(F.when(late, F.col("size")).otherwise(0)).alias("overdue"),
            F.min("committed_at").alias("oldest"),
        )
    )


def _settled() -> Column:
    judged = F.col("standing").isin(JUDGED, BASELINE)
    return F.coalesce(judged & _once() & (F.col("ahead") == 0), F.lit(False))


def _untouched() -> Column:
    return F.coalesce(F.col("standing") == IN_FLIGHT, F.lit(False)) & F.col("copies").isNull()


def _once() -> Column:
    digest = F.col("digest")
    same = (F.col("low_digest") == digest) & (F.col("high_digest") == digest)
    return (F.col("copies") == 1) & same


def _clean() -> Column:
    copies, ahead = F.coalesce("copies", F.lit(0)), F.coalesce("ahead", F.lit(0))
    excused = (F.col("standing") != JUDGED) | (ahead > 0)
    absent = F.col("standing").isNotNull() & (copies == 0) & excused
    return F.coalesce(_once() | absent, F.lit(False))


def _copies_of(suspect: DataFrame, records: DataFrame) -> DataFrame:
    """Return the first records of each suspect, in the order of their places."""
    order = Window.partitionBy("half_id").orderBy("topic", "partition", "offset")
    first = records.join(suspect.select("half_id"), "half_id", "left_semi").withColumn(
        "place", F.row_number().over(order)
    )
    return (
        first.where(F.col("place") <= COPIES_SHOWN)
        .groupBy("half_id")
        .agg(F.sort_array(F.collect_list(F.struct(*COPY))).alias("found"))
    )


def _listings_of(suspect: DataFrame, entries: DataFrame) -> DataFrame:
    return (
        entries.join(suspect.select("half_id"), "half_id", "left_semi")
        .groupBy("half_id")
        .agg(F.sort_array(F.collect_set(F.struct(*LISTING))).alias("listed"))
    )
