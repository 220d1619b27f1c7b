"""How many commits of its shard lie up to a message: told of the commit log and of a record alike.

A commit's rank is counted in the commit log. A record's is where its batch begins there and the
index that its header names. So "the record names the place of its commit" is one equality, without
an id. Ranks count from the first row that a run reads, and mean nothing beyond that run.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from outbox.manifest import Kind
from outbox.message_id import SHARDS

BATCH_FACTS: Final = ("from_rank", "to_rank", "in_turn", "whole")
"""What is known of the batch that a record names."""


def flushes(commits: DataFrame) -> DataFrame:
    """Return, a row of the commit log, its size and how many commits its shard has before it."""
    sized = commits.select(
        F.col("shard").cast("int").alias("shard"),
        "xid",
        F.size("half_ids").cast("bigint").alias("size"),
    )
    before = Window.partitionBy("shard").orderBy("xid").rowsBetween(Window.unboundedPreceding, -1)
    return sized.withColumn("before", F.coalesce(F.sum("size").over(before), F.lit(0)))


def batches(manifests: DataFrame, flushes: DataFrame) -> DataFrame:
    """Return the relay's batches: the ranks that each begins behind and ends with.

    ``whole`` tells whether the manifest has as many entries as its range has commits, ``in_turn``
    whether it publishes a range at all, which releases and repairs do not. One row a number: where
    two manifests bear the same one, neither tells a rank.
    """
    listed = manifests.where("intact").select(
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


def with_ranks(records: DataFrame, batches: DataFrame) -> DataFrame:
    """Return the records with what is known of the batch they name, and their rank by it.

    The rank is null where a record names no place among the batches that are read.
    """
    beside = records.join(F.broadcast(batches), ["shard", "batch_no"], "left")
    return beside.withColumn("rank", _rank())


def _rank() -> Column:
    own = F.col("shard") % SHARDS == F.col("half_id").bitwiseAND(SHARDS - 1)
    named = F.col("from_rank") + F.col("index") + 1
    inside = (F.col("index") >= 0) & (named <= F.col("to_rank"))
    return F.when(own & F.col("in_turn") & F.col("whole") & inside, named)


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
