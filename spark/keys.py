"""Whether a key stays in one partition for as long as its topic's partition count stands still.

How many partitions a topic had when a record was published is told by the log itself: from the
first message of a shard that lies in the last partition on, that shard's relay knew them all. What
is older is not judged, so growth is never taken for a fault, and no clock is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.manifest import Position
from spark import schemas
from spark.finding_classes import FindingClass
from spark.findings import Finding
from spark.ledger import hex_of

KEYS_SHOWN: Final = 20
"""A topic's split keys beyond this many are counted, not listed."""

Opened = Mapping[tuple[str, int], Position]
"""By topic and shard, the first position from which the partition count is known to stand."""


def opened(pairs: DataFrame, partitions: Mapping[str, int]) -> Opened:
    """Return from where on each shard has known all of a topic's ``partitions``."""
    last = [{"topic": topic, "last": count - 1} for topic, count in partitions.items()]
    counts = schemas.frame_of(pairs.sparkSession, last, schemas.LAST_PARTITIONS)
    first = F.min(F.struct("xid", "n")).alias("first")
    rows = (
        pairs.join(F.broadcast(counts), "topic")
        .where(F.col("partition") == F.col("last"))
        .groupBy("topic", "shard")
        .agg(first)
        .collect()
    )
    return {(row["topic"], row["shard"]): Position(*row["first"]) for row in rows}


def of_known_count(pairs: DataFrame, since: Opened) -> DataFrame:
    """Return the pairs with a key that were published with the present partition count."""
    rows = [
        {"topic": topic, "shard": shard, "since_xid": first.xid, "since_n": first.n}
        for (topic, shard), first in since.items()
    ]
    known = schemas.frame_of(pairs.sparkSession, rows, schemas.OPENED)
    reached = F.struct("xid", "n") >= F.struct("since_xid", "since_n")
    keyed = pairs.where(F.col("key_hash").isNotNull())
    return keyed.join(F.broadcast(known), ["topic", "shard"]).where(reached)


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
