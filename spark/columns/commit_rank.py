"""How many commits of its shard lie up to a message: its rank, counted in the commit log.

What a batch of the relay begins behind and ends with is told in ranks as well, so that rows of the
commit log and batches can be laid over each other (``segments.py``). Ranks count from the first
row that a run reads, and mean nothing beyond that run.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from outbox.messages.manifest import Kind

ENDS: Final = ("from", "to")
BATCH_FACTS: Final = ("from_rank", "to_rank", "in_turn", "whole")
"""What is known of the batch that a record names."""


def flushes(commits: DataFrame) -> DataFrame:
    """Return, a row of the commit log, its size and how many commits its shard has before it."""
    sized = commits.select("shard", "xid", "committed_at", "size")
    before = Window.partitionBy("shard").orderBy("xid").rowsBetween(Window.unboundedPreceding, -1)
    return sized.withColumn("before", F.coalesce(F.sum("size").over(before), F.lit(0)))


def batches(manifests: DataFrame, commits: DataFrame) -> DataFrame:
    """Return the relay's batches with messages: the ranks that each begins behind and ends with.

    ``whole`` tells whether the manifest has as many entries as its range has commits, ``in_turn``
    whether it publishes a range at all, which releases and repairs do not. One row a number: where
    two manifests bear the same one, neither tells a rank.
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
    """Return the records with what is known of the batch that each names, if anything is."""
    return records.join(F.broadcast(batches), ["shard", "batch_no"], "left")


def _ranked(listed: DataFrame, commits: DataFrame) -> DataFrame:
    """Return, for both ends of each batch's range, how many commits of its shard lie up to there.

    A row of the commit log that is no longer kept counts for nothing, nor do those before it.
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
