"""Level 1 of the comparison: both sides folded into buckets, so that only what differs is joined.

A bucket is a range of half ids. Its fold counts its rows and combines their hashes in two ways, so
that neither a loss beside a duplicate, nor alterations that cancel each other, go unseen. It is no
proof against a writer who crafts digests; by accident three lanes do not collide at once.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.reconcile import IN_FLIGHT, counted, unsettled
from spark.stage import staged

BUCKET_MESSAGES: Final = 1024
"""About so many messages share a bucket."""
FROM_RECORDS: Final = 1_000_000
"""With fewer records one join is over sooner than two scans."""
MOST_DIRTY: Final = 0.5
"""When a greater share of the buckets differs, everything is joined at once."""
LANES: Final = ("messages", "mixed", "summed")


def open_ids(
    commits: DataFrame, records: DataFrame, stage_uri: str, most_dirty: float = MOST_DIRTY
) -> DataFrame:
    """Return what ``reconcile.unsettled`` returns, but join no bucket in which all is settled.

    Where the folds are equal, the judged commits and all records of the bucket are the same half
    ids with the same digests, each once, so nothing of it is open.
    """
    shift = width(commits)
    both = staged(compared(commits, records, shift), f"{stage_uri}/buckets")
    share = both.agg(F.avg(F.col("dirty").cast("int")).alias("dirty")).collect()[0]["dirty"]
    if share is None or share > most_dirty:
        return unsettled(commits, counted(records))
    dirty = F.broadcast(both.where("dirty").select("bucket"))
    return unsettled(_within(commits, dirty, shift), counted(_within(records, dirty, shift)))


def compared(commits: DataFrame, records: DataFrame, shift: int) -> DataFrame:
    """Return the buckets that either side has, and whether the two differ there."""
    judged = folded(commits.where(F.col("standing") != IN_FLIGHT), shift).alias("judged")
    bearing = folded(records.where(F.col("half_id").isNotNull()), shift).alias("bearing")
    same = [F.col(f"judged.{lane}").eqNullSafe(F.col(f"bearing.{lane}")) for lane in LANES]
    both = judged.join(bearing, "bucket", "full_outer")
    return both.select("bucket", (~(same[0] & same[1] & same[2])).alias("dirty"))


def folded(rows: DataFrame, shift: int) -> DataFrame:
    """Return the fold of each bucket: how many rows, and their hashes combined in two ways."""
    mixed = F.xxhash64("half_id", "digest")
    return rows.groupBy(bucket(shift).alias("bucket")).agg(
        F.count("*").alias("messages"),
        F.bit_xor(mixed).alias("mixed"),
        F.sum(F.shiftright(mixed, 32)).alias("summed"),
    )


def width(commits: DataFrame) -> int:
    """Return how many low bits of a half id a bucket leaves out, by how dense the ids are."""
    sums = F.count("*").alias("n"), F.min("half_id").alias("low"), F.max("half_id").alias("high")
    (row,) = commits.agg(*sums).collect()
    span = (row["high"] - row["low"]) if row["n"] else 0
    return int(span * BUCKET_MESSAGES // max(row["n"], 1)).bit_length()


def bucket(shift: int) -> Column:
    """Return the bucket of a row."""
    return F.shiftright("half_id", min(shift, 62))


def _within(rows: DataFrame, dirty: DataFrame, shift: int) -> DataFrame:
    of_bucket = rows.withColumn("bucket", bucket(shift))
    return of_bucket.join(dirty, "bucket", "left_semi").drop("bucket")
