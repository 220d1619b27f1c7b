"""Each judged commit beside the records of its very content: what order and latency are told from.

A repair's record keeps its place here and is marked: it was published out of turn on purpose.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from outbox.manifest import Kind
from spark.reconcile import JUDGED

PLACE: Final = ("topic", "partition", "offset")
"""Where a record lies."""


def pairs(commits: DataFrame, records: DataFrame) -> DataFrame:
    """Return one row a record of a judged commit: its position, its place, and its batch header.

    ``shard`` is the commit's own, ``named_shard`` the one that the header names.
    """
    committed = commits.where(F.col("standing") == JUDGED).select(
        "half_id", "digest", "shard", "xid", F.col("n").cast("bigint").alias("n"), "committed_at"
    )
    published = records.where(~F.col("ahead")).select(
        *("half_id", "digest", *PLACE, "published_at", "key_hash", "redriven"),
        *(F.col("shard").alias("named_shard"), "batch_no", "index"),
    )
    return committed.join(published, ["half_id", "digest"]).drop("digest")


def flushes(commits: DataFrame) -> DataFrame:
    """Return, a row of the commit log, its size and how many commits its shard has before it."""
    sized = commits.groupBy("shard", "xid").agg(F.max("n").cast("bigint").alias("size"))
    before = Window.partitionBy("shard").orderBy("xid").rowsBetween(Window.unboundedPreceding, -1)
    return sized.withColumn("before", F.coalesce(F.sum("size").over(before), F.lit(0)))


def batches(manifests: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the relay's batches, each with how many commits of its shard lie before its range.

    ``whole`` tells whether the manifest has as many entries as its range has commits.
    """
    listed = manifests.where("intact").select(
        *("shard", "batch_no", "entries", "from_xid", "from_n", "to_xid", "to_n"),
        (F.col("kind") == int(Kind.BATCH)).alias("in_turn"),
        F.min("batch_no").over(Window.partitionBy("shard")).alias("first_batch"),
    )
    begins, ends = _rank(listed, rows, "from"), _rank(listed, rows, "to")
    known = listed.join(begins, ["shard", "batch_no"]).join(ends, ["shard", "batch_no"])
    return known.withColumn("whole", F.col("entries") == F.col("to_rank") - F.col("from_rank"))


def _rank(listed: DataFrame, rows: DataFrame, end: str) -> DataFrame:
    """Return how many commits of its shard lie at or before one end of each batch's range.

    A row of the commit log that is no longer kept counts for nothing, nor do those before it.
    """
    nothing = F.lit(None).cast("bigint")
    marks = listed.select(
        *("shard", "batch_no", F.col(f"{end}_xid").alias("xid")),
        *(F.col(f"{end}_n").alias("n"), F.lit(0).cast("bigint").alias("size")),
    ).unionByName(
        rows.select("shard", nothing.alias("batch_no"), "xid", F.lit(0).alias("n"), "size")
    )
    earlier = Window.partitionBy("shard").orderBy("xid").rangeBetween(Window.unboundedPreceding, -1)
    size = F.max("size").over(Window.partitionBy("shard", "xid"))
    before = F.coalesce(F.sum("size").over(earlier), F.lit(0))
    rank = before + F.least("n", size)
    ranked = marks.withColumn(f"{end}_rank", rank).where(F.col("batch_no").isNotNull())
    return ranked.select("shard", "batch_no", f"{end}_rank")
