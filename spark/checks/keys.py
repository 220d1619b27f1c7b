"""Tells which records the relay published when it knew all partitions of their topic.

Growth must not be taken for a fault, so only records are judged that were published when the relay
knew all partitions. Two things show that: the first record of a shard's batches in the last
partition, and an earlier run that has counted as many partitions a while before. What is older, or
names no batch, is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.columns import schemas

NOTHING_KNOWN: Final[Mapping[str, Mapping[int, int]]] = {}


def last_partitions(session: SparkSession, partitions: Mapping[str, int]) -> DataFrame:
    """Return the ``last`` partition of each topic as a frame."""
    rows = [{"topic": topic, "last": count - 1} for topic, count in partitions.items()]
    return schemas.frame_of(session, rows, schemas.LAST_PARTITIONS)


def first_known_places(
    matches: DataFrame,
    partitions: Mapping[str, int],
    known_after: Mapping[str, Mapping[int, int]] = NOTHING_KNOWN,
) -> DataFrame:
    """Return per topic and shard the first place at which the relay knew all ``partitions``.

    ``known_after`` is by topic, then by shard, a batch after which it knew them in any case.

    A held message and a repair are published long after their commit, so positions do not show it.
    """
    counts = last_partitions(matches.sparkSession, partitions)
    in_last = matches.join(F.broadcast(counts), "topic").where(F.col("partition") == F.col("last"))
    place = F.struct(F.col("batch_no").alias("batch"), "index").alias("at")
    reached = in_last.where("batch_no IS NOT NULL").select("topic", "named_shard", place)
    rows = [
        {"topic": topic, "named_shard": shard, "batch": batch_no + 1, "index": 0}
        for topic, batches in known_after.items()
        for shard, batch_no in batches.items()
    ]
    if rows:
        later = schemas.frame_of(matches.sparkSession, rows, schemas.KNOWN_PLACES)
        at = F.struct("batch", "index").alias("at")
        reached = reached.unionByName(later.select("topic", "named_shard", at))
    return reached.groupBy("topic", "named_shard").agg(F.min("at").alias("since"))


def with_known_count(matches: DataFrame, since: DataFrame) -> DataFrame:
    """Return the matches with ``all_known``: whether the relay knew the present partition count."""
    reached = F.struct(F.col("batch_no").alias("batch"), "index") >= F.col("since")
    joined = matches.join(F.broadcast(since), ["topic", "named_shard"], "left")
    return joined.withColumn("all_known", F.coalesce(reached, F.lit(False))).drop("since")


def keyed_records(known: DataFrame) -> DataFrame:
    """Return the matches with a key that must be in its expected partition."""
    return known.where(F.col("all_known") & F.col("key_hash").isNotNull())
