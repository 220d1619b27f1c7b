"""Each judged commit beside the records of its very content: what order and places are told from.

Where the folds of both sides are equal, a record stands for its commit as well, and nothing is
joined. A repair's record keeps its place here and is marked: it was published out of turn.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.fold import Odd, joined, of_buckets
from spark.ranks import BATCH_FACTS
from spark.reconcile import JUDGED
from spark.stage import staged

PLACE: Final = ("topic", "partition", "offset")
"""Where a record lies."""
HEADER: Final = ("named_shard", "batch_no", "index")
"""Where a record says that it belongs."""
RECORD: Final = ("half_id", "digest", *PLACE, "published_at", "key_hash", "redriven")


def pairs(commits: DataFrame, records: DataFrame, odd: Odd | None, stage_uri: str) -> DataFrame:
    """Return one row a record of a judged commit: its rank, its place, and its batch header.

    ``shard`` is the commit's own, ``named_shard`` the one that the header names. ``proven`` tells
    that the header is known to name the commit's place.
    """
    published = records.where(~F.col("ahead"))
    if odd is None:
        return staged(_joined(commits, published), f"{stage_uri}/pairs")
    if odd.is_nothing:
        return _even(published)
    apart = of_buckets(published, odd.buckets, inside=True)
    rest = staged(_joined(joined(commits, odd), apart), f"{stage_uri}/pairs")
    return _even(of_buckets(published, odd.buckets, inside=False)).unionByName(rest)


def _even(records: DataFrame) -> DataFrame:
    return records.select(
        *RECORD,
        *(F.col("shard").alias("named_shard"), "batch_no", "index", *BATCH_FACTS),
        *("shard", "rank", F.lit(True).alias("proven")),
    )


def _joined(commits: DataFrame, records: DataFrame) -> DataFrame:
    judged = commits.where(F.col("standing") == JUDGED).select("half_id", "digest", "shard", "rank")
    published = records.select(
        *RECORD, *(F.col("shard").alias("named_shard"), "batch_no", "index", *BATCH_FACTS)
    )
    return judged.join(published, ["half_id", "digest"]).withColumn("proven", F.lit(False))
