"""How many commits of its shard lie up to a message: its rank, counted in the commit log.

What a batch of the relay begins behind and ends with is told in ranks as well, so that rows of the
commit log and batches can be laid over each other (``stretches.py``). Ranks count from the first
row that a run reads, and mean nothing beyond that run.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from outbox.manifest import Kind

BATCH_FACTS: Final = ("from_rank", "to_rank", "in_turn", "whole")
"""What is known of the batch that a record names."""


def flushes(commits: DataFrame) -> DataFrame:
    """Return, a row of the commit log, its size and how many commits its shard has before it."""
    sized = commits.select(
        F.col("shard").cast("int").alias("shard"),
        "xid",
        "committed_at",
        F.size("half_ids").cast("bigint").alias("size"),
    )
    before = Window.partitionBy("shard").orderBy("xid").rowsBetween(Window.unboundedPreceding, -1)
    return sized.withColumn("before", F.coalesce(F.sum("size").over(before), F.lit(0)))


def batches(manifests: DataFrame, flushes: DataFrame) -> DataFrame:
    """Return the relay's batches with messages: the ranks that each begins behind and ends with.

    ``whole`` tells whether the manifest has as many entries as its range has commits, ``in_turn``
    whether it publishes a range at all, which releases and repairs do not. One row a number: where
    two manifests bear the same one, neither tells a rank.
    """
    listed = manifests.where("intact AND entries > 0").select(
        *("shard", "batch_no", "entries", "from_xid", "from_n", "to_xid", "to_n"),
        (F.col("kind") == int(Kind.BATCH)).alias("in_turn"),
    )
    begins, ends = _ranked(listed, flushes, "from"), _ranked(listed, flushes, "to")
    known = listed.join(begins, ["shard", "batch_no"]).join(ends, ["shard", "batch_no"])
    whole = F.col("entries") == F.col("to_rank") - F.col("from_rank")
    return known.groupBy("shard", "batch_no").agg(
        F.min("from_rank").alias("from_rank"),
        F.max("to_rank").alias("to_rank"),
        F.bool_and("in_turn").alias("in_turn"),
        (F.bool_and(whole) & (F.count("*") == 1)).alias("whole"),
    )


def with_batches(records: DataFrame, batches: DataFrame) -> DataFrame:
    """Return the records with what is known of the batch that each names, if anything is."""
    return records.join(F.broadcast(batches), ["shard", "batch_no"], "left")


def _ranked(listed: DataFrame, flushes: DataFrame, end: str) -> DataFrame:
    """Return how many commits of its shard lie at or before one end of each batch's range.

    A row of the commit log that is no longer kept counts for nothing, nor do those before it.
    """
    nothing = F.lit(None).cast("bigint")
    marks = listed.select(
        *("shard", "batch_no", F.col(f"{end}_xid").alias("xid")),
        *(F.col(f"{end}_n").alias("n"), F.lit(0).cast("bigint").alias("size")),
    ).unionByName(
        flushes.select("shard", nothing.alias("batch_no"), "xid", F.lit(0).alias("n"), "size")
    )
    earlier = Window.partitionBy("shard").orderBy("xid").rangeBetween(Window.unboundedPreceding, -1)
    size = F.max("size").over(Window.partitionBy("shard", "xid"))
    before = F.coalesce(F.sum("size").over(earlier), F.lit(0))
    ranked = marks.withColumn(f"{end}_rank", before + F.least("n", size))
    return ranked.where(F.col("batch_no").isNotNull()).select("shard", "batch_no", f"{end}_rank")
