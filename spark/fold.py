"""Level 1 of the comparison: both sides folded into buckets, so that only what differs is joined.

A bucket is a run of ranks of a shard (``ranks.py``). Its fold counts its rows and combines their
hashes in two ways, so that neither a loss beside a duplicate, nor alterations that cancel each
other, go unseen. A hash covers content and rank: where folds are equal, each record of the bucket
is the commit at its place. It is no proof against a writer who crafts digests; by accident three
lanes do not collide at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.reconcile import IN_FLIGHT, counted, unsettled
from spark.stage import staged

BUCKET_BITS: Final = 10
"""1 024 messages share a bucket."""
FROM_RECORDS: Final = 1_000_000
"""With fewer records one join is over sooner than several scans."""
MOST_DIRTY: Final = 0.5
"""When a greater share of the buckets differs, everything is joined at once."""
LANES: Final = ("messages", "mixed", "summed")


class Mode(StrEnum):
    """How both sides are compared; the findings are the same."""

    AUTO = "auto"
    TWO_LEVEL = "two_level"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """What must be joined: buckets that differ, and half ids with a record out of its place."""

    buckets: DataFrame
    half_ids: DataFrame
    dirty_ratio: float

    @property
    def is_nothing(self) -> bool:
        """Tell whether both sides are equal, and all of them in its place."""
        return self.dirty_ratio == 0.0


def odd(
    commits: DataFrame, records: DataFrame, size: int, mode: Mode, stage_uri: str
) -> Odd | None:
    """Compare the folds of both sides; None where everything is to be joined instead."""
    if mode is Mode.FULL or (mode is Mode.AUTO and size < FROM_RECORDS):
        return None
    both = staged(compared(commits, records), f"{stage_uri}/buckets")
    dirty = both.where("dirty").select("shard", "bucket")
    share = both.agg(F.avg(F.col("dirty").cast("int")).alias("dirty")).collect()[0]["dirty"] or 0.0
    if mode is Mode.AUTO and share > MOST_DIRTY:
        return None
    strays = of_buckets(records if share else records.limit(0), dirty, inside=True)
    ids = strays.where(F.col("half_id").isNotNull()).select("half_id").distinct()
    return Odd(buckets=dirty, half_ids=staged(ids, f"{stage_uri}/odd"), dirty_ratio=share)


def open_ids(commits: DataFrame, records: DataFrame, odd: Odd | None) -> DataFrame:
    """Return what ``reconcile.unsettled`` tells of all, but join only what is odd.

    Where the folds are equal, the judged commits and the records of the bucket are the same
    contents in the same places, each once. So nothing of it is open, unless an odd record bears one
    of its half ids as well.
    """
    if odd is None:
        return unsettled(commits, counted(records))
    return unsettled(joined(commits, odd), counted(joined(records, odd)))


def joined(rows: DataFrame, odd: Odd) -> DataFrame:
    """Return the rows of one side that must be joined with the other."""
    if odd.is_nothing:
        return rows.limit(0)
    named = odd.half_ids.withColumn("named", F.lit(True))
    beside = _beside(rows, odd.buckets).join(named, "half_id", "left")
    return beside.where(_is_odd() | F.col("named").isNotNull()).drop(*_MARKS, "named")


def of_buckets(rows: DataFrame, dirty: DataFrame, *, inside: bool) -> DataFrame:
    """Return the rows that are in a differing bucket, or in none; or all the others."""
    beside = _beside(rows, dirty)
    return beside.where(_is_odd() if inside else ~_is_odd()).drop(*_MARKS)


def compared(commits: DataFrame, records: DataFrame) -> DataFrame:
    """Return the buckets that either side has, and whether the two differ there."""
    judged = folded(commits.where(F.col("standing") != IN_FLIGHT)).alias("judged")
    placed = folded(records).alias("placed")
    same = [F.col(f"judged.{lane}").eqNullSafe(F.col(f"placed.{lane}")) for lane in LANES]
    both = judged.join(placed, ["shard", "bucket"], "full_outer")
    return both.select("shard", "bucket", (~(same[0] & same[1] & same[2])).alias("dirty"))


def folded(rows: DataFrame) -> DataFrame:
    """Return the fold of each bucket: how many rows, and their hashes combined in two ways.

    Rows without a rank are in a bucket that is like no other, so they always differ.
    """
    mixed = F.xxhash64("digest", "rank")
    return rows.groupBy("shard", bucket().alias("bucket")).agg(
        F.count("*").alias("messages"),
        F.bit_xor(mixed).alias("mixed"),
        F.sum(F.shiftright(mixed, 32)).alias("summed"),
    )


def bucket() -> Column:
    """Return the bucket of a row; null for a row without a rank."""
    return F.shiftright("rank", BUCKET_BITS)


_MARKS: Final = ("bucket", "differs")


def _beside(rows: DataFrame, dirty: DataFrame) -> DataFrame:
    marks = F.broadcast(dirty.withColumn("differs", F.lit(True)))
    return rows.withColumn("bucket", bucket()).join(marks, ["shard", "bucket"], "left")


def _is_odd() -> Column:
    return F.col("differs").isNotNull() | F.col("rank").isNull()
