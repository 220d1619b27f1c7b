"""The comparison as named DataFrame -> DataFrame steps: count, compare, collect the evidence.

Commits and records are joined on the half id. What is exactly once in both, with equal digests, is
clean and never leaves Spark. Everything else is a suspect, whose evidence is collected for
``classify``.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.columns.segments import IN_FLIGHT, JUDGED

COPIES_SHOWN: Final = 20
"""Above this number a suspect's records are counted, not listed."""
ONCE: Final = "copies = 1 AND low_digest = digest AND high_digest = digest"
"""A half id has one judged record, whose digest is that of the commit."""


def count_copies(records: DataFrame) -> DataFrame:
    """Return one row per half id: its judged copies, those ahead, and the range of its digests.

    Without a digest it equals no commit: one of its records is written again.
    """
    return (
        records.where("half_id IS NOT NULL")
        .groupBy("half_id")
        .agg(
            F.expr("count_if(NOT ahead) AS copies"),
            F.expr("count_if(ahead) AS ahead"),
            F.expr("if(bool_or(again), NULL, min(if(ahead, NULL, digest))) AS low_digest"),
            F.expr("max(if(ahead, NULL, digest)) AS high_digest"),
        )
    )


def suspects(commits: DataFrame, counts: DataFrame) -> DataFrame:
    """Return every half id whose commit and records are not exactly one clean pair.

    A judged commit without a record is one; one in flight or before the baseline is not. A record
    ahead of the cut excuses a missing record, but never a missing commit.
    """
    return (
        commits.join(counts, "half_id", "full_outer")
        .where(f"""NOT coalesce(
            {ONCE}
            OR standing <> '{JUDGED}' AND coalesce(copies, 0) = 0
            OR standing = '{JUDGED}' AND copies = 0 AND ahead > 0,
            false
        )""")
        .selectExpr(
            "half_id",
            "standing",
            "digest AS committed_digest",
            *("xid", "n", "committed_at"),
            "coalesce(copies, 0) AS copies",
            "coalesce(ahead, 0) AS ahead",
        )
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
    asked = suspect.select("half_id")
    return (
        marked.join(_copies(records.join(asked, "half_id", "left_semi")), "half_id", "left")
        .join(_listings(entries.join(asked, "half_id", "left_semi")), "half_id", "left")
        .orderBy("half_id")
    )


def late_by_shard(segments: DataFrame, grace_seconds: int, cut_at: Column) -> DataFrame:
    """Return per shard the commits in flight, how many of them are overdue, and the oldest."""
    due_at = F.expr(f"committed_at + make_dt_interval(0, 0, 0, {grace_seconds})")
    return (
        segments.where(f"standing = '{IN_FLIGHT}'")
        .withColumn("late", due_at < cut_at)
        .groupBy("shard")
        .agg(
            F.expr("sum(size) AS in_flight"),
            F.expr("sum(if(late, size, 0)) AS overdue"),
            F.expr("min(committed_at) AS oldest"),
        )
    )


def _copies(records: DataFrame) -> DataFrame:
    """Return the first records of each half id, in the order of their places."""
    placed = records.selectExpr(
        "*",
        """row_number() OVER (
            PARTITION BY half_id
            ORDER BY topic, partition, offset
        ) AS place""",
    )
    found = """sort_array(collect_list(struct(
        topic, partition, offset, published_at, message_id, shard, batch_no,
        redriven, repair, digest, key_hash, ahead, again
    ))) AS found"""
    return placed.where(f"place <= {COPIES_SHOWN}").groupBy("half_id").agg(F.expr(found))


def _listings(entries: DataFrame) -> DataFrame:
    listed = """sort_array(collect_set(struct(
        batch_no, index, status, message_id, shard
    ))) AS listed"""
    return entries.groupBy("half_id").agg(F.expr(listed))
