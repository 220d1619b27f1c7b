"""Checks that a key stays in one partition while its topic's partition count does not change.

The log itself shows how many partitions a topic had when a record was published: from the first
record of a shard's batches in the last partition on, its relay knew all partitions. What is older,
or names no batch, is not judged. So growth is never taken for a fault, and no clock is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.columns import schemas
from spark.findings.finding import Finding, hexadecimal
from spark.findings.finding_class import FindingClass

KEYS_SHOWN: Final = 20
"""Above this number a topic's split keys are counted, not listed."""


def last_partitions(session: SparkSession, partitions: Mapping[str, int]) -> DataFrame:
    """Return the ``last`` partition of each topic as a frame."""
    rows = [{"topic": topic, "last": count - 1} for topic, count in partitions.items()]
    return schemas.frame_of(session, rows, schemas.LAST_PARTITIONS)


def first_known_places(matches: DataFrame, partitions: Mapping[str, int]) -> DataFrame:
    """Return per topic and shard the first place at which the relay knew all ``partitions``.

    A held message and a repair are published long after their commit, so positions do not show it.
    """
    counts = last_partitions(matches.sparkSession, partitions)
    in_last = matches.join(F.broadcast(counts), "topic").where(F.col("partition") == F.col("last"))
    place = F.struct(F.col("batch_no").alias("batch"), "index")
    first = F.min(F.when(F.col("batch_no").isNotNull(), place)).alias("since")
    return in_last.groupBy("topic", "named_shard").agg(first).where(F.col("since").isNotNull())


def with_known_count(matches: DataFrame, since: DataFrame) -> DataFrame:
    """Return the matches with ``all_known``: whether the relay knew the present partition count."""
    reached = F.struct(F.col("batch_no").alias("batch"), "index") >= F.col("since")
    joined = matches.join(F.broadcast(since), ["topic", "named_shard"], "left")
    return joined.withColumn("all_known", F.coalesce(reached, F.lit(False))).drop("since")


def keyed_records(known: DataFrame) -> DataFrame:
    """Return the matches with a key that must be in its expected partition."""
    return known.where(F.col("all_known") & F.col("key_hash").isNotNull())


def spread_keys(matches: DataFrame) -> DataFrame:
    """Return the keys with records in more than one partition, for any reason."""
    by_key = matches.groupBy("topic", "key_hash")
    ends = by_key.agg(F.min("partition").alias("low"), F.max("partition").alias("high"))
    return ends.where("low < high").select("topic", "key_hash")


def split_keys(matches: DataFrame, keys: DataFrame, unrequested: DataFrame) -> DataFrame:
    """Return one row per topic: the number of split keys, and the first of them with their counts.

    ``unrequested`` are the half messages whose producer requested no partition; others are not
    judged.
    """
    each = matches.join(keys, ["topic", "key_hash"], "left_semi").join(
        unrequested, "half_id", "left_semi"
    )
    counted = each.groupBy("topic", "key_hash", "partition").agg(F.count("*").alias("messages"))
    counts = F.sort_array(F.collect_list(F.struct("partition", "messages"))).alias("counts")
    split = counted.groupBy("topic", "key_hash").agg(counts).where(F.size("counts") > 1)
    shown = F.slice(F.sort_array(F.collect_list(F.struct("key_hash", "counts"))), 1, KEYS_SHOWN)
    return split.groupBy("topic").agg(F.count("*").alias("keys"), shown.alias("shown"))


def split_finding(row: Any) -> Finding:
    """Return the finding of a topic with split keys."""
    shown = [
        {
            "key_hash": hexadecimal(each["key_hash"]),
            "messages_by_partition": {
                str(count["partition"]): count["messages"] for count in each["counts"]
            },
        }
        for each in row["shown"]
    ]
    return Finding(
        finding_class=FindingClass.KEY_SPLIT,
        subject=f"topic:{row['topic']}",
        topic=row["topic"],
        key_hash=row["shown"][0]["key_hash"],
        detail={"keys": row["keys"], "shown": shown},
    )
