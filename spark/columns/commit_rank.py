"""The rank of a message: the number of commits of its shard up to it, counted in the commit log.

The range of a relay batch is expressed in ranks as well, so that ``segments.py`` can match rows of
the commit log with batches. Ranks count from the first row that a run reads. They are valid in that
run only.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from outbox.messages.manifest import Kind

ENDS: Final = ("from", "to")
BATCH_FACTS: Final = ("from_rank", "to_rank", "in_turn", "whole")
"""Columns with the facts about the batch that a record names."""


def flushes(commits: DataFrame) -> DataFrame:
    """Return for each row of the commit log its size and the number of commits before it."""
    sized = commits.select("shard", "xid", "committed_at", "size")
    before = Window.partitionBy("shard").orderBy("xid").rowsBetween(Window.unboundedPreceding, -1)
    return sized.withColumn("before", F.coalesce(F.sum("size").over(before), F.lit(0)))


def batches(manifests: DataFrame, commits: DataFrame) -> DataFrame:
    """Return the relay's batches with messages and their range of ranks, exclusive and inclusive.

    ``whole``: the manifest has as many entries as its range has commits. ``in_turn``: the batch
    publishes a range; releases and repairs do not. There is one row per batch number. Where two
    manifests have the same number, neither gives a rank.
    """
    ends = _ranked(manifests.where("intact AND entries > 0"), commits)
    length = F.max("rank") - F.min("rank")
    return ends.groupBy("shard", "batch_no").agg(
        F.min("rank").alias("from_rank"),
        F.max("rank").alias("to_rank"),
        F.bool_and("in_turn").alias("in_turn"),
        ((F.max("entries") == length) & (F.count("*") == len(ENDS))).alias("whole"),
    )


def with_batches(records: DataFrame, batches: DataFrame) -> DataFrame:
    """Return the records with the facts about the batch that each names; null where unknown."""
    return records.join(batches, ["shard", "batch_no"], "left")


def _ranked(listed: DataFrame, commits: DataFrame) -> DataFrame:
    """Return for both ends of each batch's range the number of commits of its shard up to there.

    A row of the commit log that is no longer kept does not count, nor do the rows before it.
    """
    positions = [
        F.struct(F.col(f"{end}_xid").alias("xid"), F.col(f"{end}_n").alias("n")) for end in ENDS
    ]
    in_turn = (F.col("kind") == int(Kind.BATCH)).alias("in_turn")
    marks = listed.select(
        "shard", "batch_no", "entries", in_turn, F.inline(F.array(*positions))
    ).unionByName(commits.select("shard", "xid", "size"), allowMissingColumns=True)
    earlier = Window.partitionBy("shard").orderBy("xid").rangeBetween(Window.unboundedPreceding, -1)
    size = F.coalesce(F.max("size").over(Window.partitionBy("shard", "xid")), F.lit(0))
    before = F.coalesce(F.sum("size").over(earlier), F.lit(0))
    ranked = marks.withColumn("rank", before + F.least("n", size))
    return ranked.where(F.col("batch_no").isNotNull())
