"""Level 1 of the comparison: both sides folded into buckets, so that only what differs is joined.

A bucket is a run of batches of a shard. Its fold counts its rows and combines their hashes in two
ways, so that neither a loss beside a duplicate, nor alterations that cancel each other, go unseen.
A hash covers content and slot (``slot.py``): where folds are equal, each record of the bucket is
the commit at its place. It is no proof against a writer who crafts digests; by accident three lanes
do not collide at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log2
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.columns.frames import Frames
from spark.columns.segments import IN_FLIGHT
from spark.columns.slot import INDEX_BITS
from spark.columns.staging import staged
from spark.compare.placement import counted, unsettled

BUCKET_MESSAGES: Final = 1024
"""About so many messages share a bucket if nothing else is said; a single batch may have more."""
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
class Mismatch:
    """What must be joined: some buckets, whatever is in none, and half ids of odd records."""

    buckets: DataFrame
    half_ids: DataFrame
    bits: int
    dirty_ratio: float

    @property
    def is_nothing(self) -> bool:
        """Tell whether both sides are equal, and all of them in its place."""
        return self.dirty_ratio == 0.0


def bucket_bits(records: int, batches: int, bucket_messages: int) -> int:
    """Return how many bits of a slot are not its bucket's, for so many records and batches."""
    in_a_batch = max(1, records) / max(1, batches)
    return INDEX_BITS + max(0, round(log2(bucket_messages / in_a_batch)))


def mismatches(
    frames: Frames, mode: Mode, stage_uri: str, bucket_messages: int = BUCKET_MESSAGES
) -> Mismatch | None:
    """Compare the folds of both sides; None where everything is to be joined instead."""
    if mode is Mode.FULL or (mode is Mode.AUTO and frames.size < FROM_RECORDS):
        return None
    commits, records = frames.commits, frames.records
    bits = bucket_bits(frames.size, frames.batches.count(), bucket_messages)
    both = staged(compared(commits, records, bits), f"{stage_uri}/buckets")
    share = both.agg(F.avg(F.col("dirty").cast("int")).alias("dirty")).collect()[0]["dirty"] or 0.0
    if mode is Mode.AUTO and share > MOST_DIRTY:
        return None
    dirty = both.where("dirty").select("shard", "bucket")
    if share == 0.0:
        return Mismatch(
            buckets=dirty, half_ids=_ids(records.limit(0)), bits=bits, dirty_ratio=share
        )
    ids = staged(_ids(of_buckets(records, dirty, bits)), f"{stage_uri}/odd")
    touched = _touched(commits, ids, bits)
    buckets = staged(dirty.unionByName(touched).distinct(), f"{stage_uri}/touched")
    return Mismatch(buckets=buckets, half_ids=ids, bits=bits, dirty_ratio=share)


def open_ids(commits: DataFrame, records: DataFrame, mismatch: Mismatch | None) -> DataFrame:
    """Return what ``reconcile.unsettled`` tells of all, but join only what is odd.

    Where the folds are equal, the judged commits and the records of the bucket are the same
    contents in the same places, each once. So nothing of it is open, unless an odd record bears one
    of its half ids as well: then all of the bucket counts as odd.
    """
    if mismatch is None:
        return unsettled(commits, counted(records))
    return unsettled(odd_commits(commits, mismatch), counted(odd_records(records, mismatch)))


def odd_commits(commits: DataFrame, mismatch: Mismatch) -> DataFrame:
    """Return the commits that must be joined with records; of those in flight the named ones."""
    if mismatch.is_nothing:
        return commits.limit(0)
    named = mismatch.half_ids.withColumn("named", F.lit(True))
    beside = _beside(commits, mismatch.buckets, mismatch.bits).join(named, "half_id", "left")
    apart = _is_odd() & (F.col("standing") != IN_FLIGHT)
    return beside.where(apart | F.col("named").isNotNull()).drop(*_MARKS, "named")


def odd_records(records: DataFrame, mismatch: Mismatch | None) -> DataFrame:
    """Return the records that must be joined with commits: without folds all of them."""
    if mismatch is None:
        return records
    return (
        records.limit(0)
        if mismatch.is_nothing
        else of_buckets(records, mismatch.buckets, mismatch.bits)
    )


def even_records(records: DataFrame, mismatch: Mismatch) -> DataFrame:
    """Return the records that are each the commit at its place."""
    if mismatch.is_nothing:
        return records
    return _beside(records, mismatch.buckets, mismatch.bits).where(~_is_odd()).drop(*_MARKS)


def of_buckets(records: DataFrame, buckets: DataFrame, bits: int) -> DataFrame:
    """Return the records that are in one of these buckets, or in none."""
    return _beside(records, buckets, bits).where(_is_odd()).drop(*_MARKS)


def compared(commits: DataFrame, records: DataFrame, bits: int) -> DataFrame:
    """Return the buckets that either side has, and whether the two differ there."""
    judged = folded(commits.where(F.col("standing") != IN_FLIGHT), bits).alias("judged")
    placed = folded(records, bits).alias("placed")
    same = [F.col(f"judged.{lane}").eqNullSafe(F.col(f"placed.{lane}")) for lane in LANES]
    both = judged.join(placed, ["shard", "bucket"], "full_outer")
    return both.select("shard", "bucket", (~(same[0] & same[1] & same[2])).alias("dirty"))


def folded(rows: DataFrame, bits: int) -> DataFrame:
    """Return the fold of each bucket: how many rows, and their hashes combined in two ways.

    Rows without a slot are in a bucket that is like no other, so they always differ.
    """
    mixed = F.xxhash64("digest", "slot")
    return rows.groupBy("shard", F.shiftright("slot", bits).alias("bucket")).agg(
        F.count("*").alias("messages"),
        F.bit_xor(mixed).alias("mixed"),
        F.sum(F.shiftright(mixed, 32)).alias("summed"),
    )


_MARKS: Final = ("bucket", "differs")


def _touched(commits: DataFrame, half_ids: DataFrame, bits: int) -> DataFrame:
    """Return the buckets of the commits that odd records name."""
    named = commits.join(half_ids, "half_id", "left_semi")
    placed = named.where((F.col("standing") != IN_FLIGHT) & F.col("slot").isNotNull())
    return placed.select("shard", F.shiftright("slot", bits).alias("bucket"))


def _ids(records: DataFrame) -> DataFrame:
    return records.where(F.col("half_id").isNotNull()).select("half_id").distinct()


def _beside(rows: DataFrame, buckets: DataFrame, bits: int) -> DataFrame:
    marks = F.broadcast(buckets.withColumn("differs", F.lit(True)))
    bucket = F.shiftright("slot", bits)
    return rows.withColumn("bucket", bucket).join(marks, ["shard", "bucket"], "left")


def _is_odd() -> Column:
    return F.col("differs").isNotNull() | F.col("slot").isNull()
