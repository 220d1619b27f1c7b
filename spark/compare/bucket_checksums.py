"""Level 1 of the comparison: checksums of buckets; only buckets that differ are joined.

A bucket is a run of batches of a shard. Its checksum counts its rows and combines their hashes in
two ways. So a loss beside a duplicate is seen, and so are alterations that cancel each other. A
hash covers content and slot (``slot.py``): where checksums are equal, each record of the bucket is
the commit at its place. This is no proof against a writer who crafts digests, but the three
components do not collide by accident at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.columns.frames import Frames
from spark.columns.segments import IN_FLIGHT
from spark.columns.slot import INDEX_BITS
from spark.columns.staging import stage_counted, stage_frame
from spark.compare.placement import count_copies, suspects

BUCKET_MESSAGES: Final = 1024
"""Number of messages per bucket, about; a single batch may have more."""
FROM_RECORDS: Final = 1_000_000
"""With fewer records one join is faster than several scans."""
MOST_DIRTY: Final = 0.5
"""If a greater share of the buckets differs, everything is joined at once."""
MISMATCHED: Final = "(differs IS NOT NULL OR slot IS NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """What must be joined: buckets that differ, rows without a bucket, and their half ids."""

    buckets: DataFrame
    half_ids: DataFrame
    bits: int
    dirty_ratio: float

    @property
    def is_empty(self) -> bool:
        """Whether both sides are equal, each record at its place."""
        return self.dirty_ratio == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What differs between the two sides."""

    mismatch: Mismatch | None
    """The buckets that differ; None where everything was joined."""
    suspects: DataFrame
    """The rows of ``placement.suspects``."""
    count: int
    """Number of suspects."""
    uncommitted: int
    """Those of them that are not among the commits that were read."""


def differences(frames: Frames) -> Differences:
    """Compare both sides."""
    mismatch = None
    if frames.size >= FROM_RECORDS:
        mismatch = mismatches(frames, BUCKET_MESSAGES, MOST_DIRTY)
    found, seen = stage_counted(
        suspects_of(frames.commits, frames.records, mismatch),
        f"{frames.stage_uri}/suspects",
        rows=F.count("*"),
        uncommitted=F.expr("count_if(standing IS NULL)"),
    )
    return Differences(
        mismatch=mismatch, suspects=found, count=seen["rows"], uncommitted=seen["uncommitted"]
    )


def bucket_bits(records: int, batches: int, bucket_messages: int) -> int:
    """Return the number of bits of a slot below its bucket, for this many records and batches."""
    in_a_batch = max(1, records) / max(1, batches)
    return INDEX_BITS + max(0, round(log2(bucket_messages / in_a_batch)))


def mismatches(frames: Frames, bucket_messages: int, most_dirty: float) -> Mismatch | None:
    """Compare the checksums of both sides; None if more than ``most_dirty`` of them differ."""
    commits, records, stage_uri = frames.commits, frames.records, frames.stage_uri
    bits = bucket_bits(frames.size, frames.batches.count(), bucket_messages)
    both = stage_frame(compare_buckets(commits, records, bits), f"{stage_uri}/buckets")
    share = both.selectExpr("coalesce(avg(int(dirty)), 0) AS share").collect()[0]["share"]
    if share > most_dirty:
        return None
    found = Mismatch(
        buckets=both.where("dirty").select("shard", "bucket"),
        half_ids=_ids(records.limit(0)),
        bits=bits,
        dirty_ratio=share,
    )
    if found.is_empty:
        return found
    ids = stage_frame(_ids(mismatched_records(records, found)), f"{stage_uri}/mismatched")
    named = (
        commits.join(ids, "half_id", "left_semi")
        .where(f"standing <> '{IN_FLIGHT}' AND slot IS NOT NULL")
        .selectExpr("shard", f"{_bucket(bits)} AS bucket")
    )
    buckets = stage_frame(found.buckets.unionByName(named).distinct(), f"{stage_uri}/named_buckets")
    return replace(found, buckets=buckets, half_ids=ids)


def suspects_of(commits: DataFrame, records: DataFrame, mismatch: Mismatch | None) -> DataFrame:
    """Return the result of ``placement.suspects`` over all rows, but join only mismatched rows.

    Where checksums are equal, the judged commits and the records of the bucket are the same
    contents in the same places, each once. So nothing in it is suspect, unless a mismatched record
    has one of its half ids too: then the whole bucket counts as mismatched.
    """
    if mismatch is not None:
        commits = mismatched_commits(commits, mismatch)
    return suspects(commits, count_copies(mismatched_records(records, mismatch)))


def mismatched_commits(commits: DataFrame, mismatch: Mismatch) -> DataFrame:
    """Return the commits to join with records; of those in flight only the named ones."""
    if mismatch.is_empty:
        return commits.limit(0)
    named = mismatch.half_ids.withColumn("named", F.lit(True))
    asked = f"{MISMATCHED} AND standing <> '{IN_FLIGHT}' OR named"
    bucketed = _with_bucket(commits, mismatch).join(named, "half_id", "left")
    return bucketed.where(asked).select(*commits.columns)


def mismatched_records(records: DataFrame, mismatch: Mismatch | None) -> DataFrame:
    """Return the records to join with commits; all of them without checksums."""
    if mismatch is None:
        return records
    if mismatch.is_empty:
        return records.limit(0)
    return _with_bucket(records, mismatch).where(MISMATCHED).select(*records.columns)


def equal_records(records: DataFrame, mismatch: Mismatch) -> DataFrame:
    """Return the records that are equal to the commit at their place."""
    if mismatch.is_empty:
        return records
    return _with_bucket(records, mismatch).where(f"NOT {MISMATCHED}").select(*records.columns)


def compare_buckets(commits: DataFrame, records: DataFrame, bits: int) -> DataFrame:
    """Return the buckets of either side, and whether the two sides differ there."""
    judged = _checksums(commits.where(f"standing <> '{IN_FLIGHT}'"), bits)
    return (
        judged.withColumnRenamed("checksum", "committed")
        .join(_checksums(records, bits), ["shard", "bucket"], "full_outer")
        .selectExpr("shard", "bucket", "NOT committed <=> checksum AS dirty")
    )


def _checksums(rows: DataFrame, bits: int) -> DataFrame:
    """Return the checksum of each bucket: its number of rows, and their hashes combined twice.

    Rows without a slot are in a bucket that equals no other, so they always differ.
    """
    checksum = """struct(
        count(*),
        bit_xor(xxhash64(digest, slot)),
        sum(shiftright(xxhash64(digest, slot), 32))
    ) AS checksum"""
    return rows.groupBy("shard", F.expr(f"{_bucket(bits)} AS bucket")).agg(F.expr(checksum))


def _with_bucket(rows: DataFrame, mismatch: Mismatch) -> DataFrame:
    """Mark the rows in one of the buckets with ``differs``."""
    marks = mismatch.buckets.withColumn("differs", F.lit(True))
    bucketed = rows.withColumn("bucket", F.expr(_bucket(mismatch.bits)))
    return bucketed.join(marks, ["shard", "bucket"], "left")


def _bucket(bits: int) -> str:
    return f"shiftright(slot, {bits})"


def _ids(records: DataFrame) -> DataFrame:
    return records.where("half_id IS NOT NULL").select("half_id").distinct()
