"""Whether a key stays in one partition for as long as its topic's partition count stands still.

How many partitions a topic had when a record was published is told by the log itself: from the
first record of a shard's batches that lies in the last partition on, its relay knew them all. What
is older, or names no batch, is not judged, so growth is never taken for a fault, and no clock is
asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark.columns import schemas
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from spark.findings.ledger import hex_of

KEYS_SHOWN: Final = 20
"""A topic's split keys beyond this many are counted, not listed."""


def last_partitions(session: SparkSession, partitions: Mapping[str, int]) -> DataFrame:
    """Return the ``last`` partition of each topic as a frame."""
    rows = [{"topic": topic, "last": count - 1} for topic, count in partitions.items()]
    return schemas.frame_of(session, rows, schemas.LAST_PARTITIONS)


def opened(pairs: DataFrame, partitions: Mapping[str, int]) -> DataFrame:
    """Return, a topic and shard, the first batch place at which all ``partitions`` were known.

    A held message and a repair are published long after their commit, so positions do not tell.
    """
    counts = last_partitions(pairs.sparkSession, partitions)
    in_last = pairs.join(F.broadcast(counts), "topic").where(F.col("partition") == F.col("last"))
    place = F.struct(F.col("batch_no").alias("batch"), "index")
    first = F.min(F.when(F.col("batch_no").isNotNull(), place)).alias("since")
    return in_last.groupBy("topic", "named_shard").agg(first).where(F.col("since").isNotNull())


def known_count(pairs: DataFrame, since: DataFrame) -> DataFrame:
    """Return the pairs, telling of each whether the present partition count was known by then."""
    reached = F.struct(F.col("batch_no").alias("batch"), "index") >= F.col("since")
    beside = pairs.join(F.broadcast(since), ["topic", "named_shard"], "left")
    return beside.withColumn("all_known", F.coalesce(reached, F.lit(False))).drop("since")


def keyed(known: DataFrame) -> DataFrame:
    """Return those that have a key and must all lie where it belongs."""
    return known.where(F.col("all_known") & F.col("key_hash").isNotNull())


def spread(pairs: DataFrame) -> DataFrame:
    """Return the keys that lie in more than one partition, for whatever reason."""
    by_key = pairs.groupBy("topic", "key_hash")
    ends = by_key.agg(F.min("partition").alias("low"), F.max("partition").alias("high"))
    return ends.where("low < high").select("topic", "key_hash")


def splits(pairs: DataFrame, keys: DataFrame, free: DataFrame) -> DataFrame:
    """Return one row a topic: how many keys are split, and the first of them with their counts.

    ``free`` are the half messages whose producer asked for no partition; others are not judged.
    """
    each = pairs.join(keys, ["topic", "key_hash"], "left_semi").join(free, "half_id", "left_semi")
    counted = each.groupBy("topic", "key_hash", "partition").agg(F.count("*").alias("messages"))
    lies = F.sort_array(F.collect_list(F.struct("partition", "messages"))).alias("lies")
    split = counted.groupBy("topic", "key_hash").agg(lies).where(F.size("lies") > 1)
    shown = F.slice(F.sort_array(F.collect_list(F.struct("key_hash", "lies"))), 1, KEYS_SHOWN)
    return split.groupBy("topic").agg(F.count("*").alias("keys"), shown.alias("shown"))


def of_split(row: Any) -> Finding:
    """Return the finding of a topic with split keys."""
    shown = [
        {
            "key_hash": hex_of(each["key_hash"]),
            "messages_by_partition": {
                str(lie["partition"]): lie["messages"] for lie in each["lies"]
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
