"""Compares what the manifests list with the commit log and with the records.

A message has one place in the commit log, so a batch whose entries are the commits of its range
lists no message of another such batch. Only the other batches are searched for messages that are
published twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from outbox.messages.manifest import HELD, PUBLISHED, PUBLISHED_BEFORE, Kind
from outbox.messages.message_id import LEAF_BITS
from spark.columns import manifests
from spark.columns.frames import Frames
from spark.columns.slot import INDEX_BITS, slot_at
from spark.columns.staging import stage_counted

OTHER_ENTRIES: Final = "its entries are not the commits of its range"
OTHER_COUNT: Final = "it does not publish as many entries as it says"
UNLISTED_RECORD: Final = "a record is in the batch that it does not publish there"
PUBLISHED_TWICE: Final = "it publishes a message that another manifest publishes too"

BATCH: Final = ("shard", "batch_no")
CHECKSUM: Final = ("listed", "mixed", "summed")
DOUBTS: Final = ("odd", "differs", "repeats", "miscounted", "partly")
"""What makes a manifest worth a closer look; without any of them no record is looked at."""
MARKS: Final = ("in_turn", "superseded", "overlaps", "odd")
NOT_HERE: Final = [HELD.decode(), PUBLISHED_BEFORE.decode()]


def content_breaks(
    frames: Frames,
    kept_from: int,
    retired_leaves: Collection[int],
    judged: Mapping[int, int],
) -> DataFrame | None:
    """Return the manifests whose contents are wrong, with the fault, as ``manifests.breaks``.

    None without any doubt: the frames that would settle it are not even built.
    ``kept_from`` is the first transaction id whose commits are kept, without those of the
    ``retired_leaves``. ``judged`` is by shard the last batch that an earlier run has compared.
    """
    kept = _is_kept(kept_from, [leaf for leaf in retired_leaves if leaf >= kept_from >> LEAF_BITS])
    listed = manifests.newer_than(frames.manifests, judged).where("intact")
    entries = manifests.entries(listed)
    compared, seen = stage_counted(
        _compared(_with_overlap(listed), entries, frames.commits, kept),
        f"{frames.stage_uri}/manifest_contents",
        **{name: F.count_if(name) for name in DOUBTS},
    )
    examined: Mapping[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
        "differs": (lambda doubtful: doubtful, OTHER_ENTRIES),
        "repeats": (lambda doubtful: _differing_by_rank(doubtful, entries, frames), OTHER_ENTRIES),
        "miscounted": (lambda doubtful: doubtful, OTHER_COUNT),
        "partly": (lambda _: _with_records(listed, frames.records), UNLISTED_RECORD),
        "odd": (lambda odd: _published_twice(odd, entries, frames.listings), PUBLISHED_TWICE),
    }
    faults = [
        examine(compared.where(doubt).select(*BATCH))
        .select(*BATCH)
        .withColumn("fault", F.lit(fault))
        for doubt, (examine, fault) in examined.items()
        if seen[doubt]
    ]
    if not faults:
        return None
    faulty = reduce(DataFrame.union, faults)
    places = listed.select("partition", "offset", *BATCH)
    return places.join(faulty.distinct(), [*BATCH]).select(
        "partition", "offset", "batch_no", "fault"
    )


def _with_overlap(listed: DataFrame) -> DataFrame:
    """Mark the manifests whose ranges are judged elsewhere or twice.

    ``superseded``: a later batch begins inside the range, because PostgreSQL had lost its end.
    ``odd``: it may list messages of other manifests: it overlaps one, or publishes out of turn.
    """
    shard = Window.partitionBy("shard").orderBy("offset")
    in_turn = F.col("kind") == int(Kind.BATCH)
    begin, end = F.struct("from_xid", "from_n"), F.struct("to_xid", "to_n")
    later = F.min(F.when(in_turn, begin)).over(shard.rowsBetween(1, Window.unboundedFollowing))
    earlier = F.max(F.when(in_turn, end)).over(shard.rowsBetween(Window.unboundedPreceding, -1))
    superseded = F.coalesce(later < end, F.lit(False)) & in_turn
    overlaps = F.coalesce(begin < earlier, F.lit(False)) & in_turn
    released = F.col("kind") == int(Kind.RELEASE)
    marks = {"in_turn": in_turn, "superseded": superseded, "overlaps": overlaps}
    return listed.withColumns(marks).withColumn("odd", superseded | overlaps | released)


def _compared(listed: DataFrame, entries: DataFrame, commits: DataFrame, kept: Column) -> DataFrame:
    """Return each manifest with whether its entries are the commits that have its slots.

    ``repeats``: they are not, but its range overlaps that of an earlier batch, which claims some.
    """
    by_entries = _checksums(entries.withColumn("slot", slot_at(F.col("batch_no"), F.col("index"))))
    by_commits = _checksums(
        commits.where("NOT carried AND slot IS NOT NULL").withColumn("status", F.lit(None))
    )
    partly = (F.col("published") < F.col("entries")).alias("partly")
    both = (
        listed.where("entries > 0")
        .select(*BATCH, *MARKS, "published", kept.alias("kept"), partly)
        .join(by_entries.alias("entry"), [*BATCH], "left")
        .join(by_commits.alias("commit"), [*BATCH], "left")
    )
    judged = F.col("in_turn") & ~F.col("superseded") & F.col("kept")
    differs = judged & ~_same_messages()
    return both.select(
        *BATCH,
        (F.col("odd") | differs).alias("odd"),
        (differs & ~F.col("overlaps")).alias("differs"),
        (differs & F.col("overlaps")).alias("repeats"),
        (F.col("entry.published_here") != F.col("published")).alias("miscounted"),
        "partly",
    )


def _differing_by_rank(repeats: DataFrame, entries: DataFrame, frames: Frames) -> DataFrame:
    """Return those of the batches whose entries are not the commits of their ranges.

    PostgreSQL had lost the position of the shard, so the batch begins again before commits that
    earlier batches have listed. It is compared only if all of them are new: those that an earlier
    run has judged are not read again.
    """
    asked = frames.batches.where("whole").join(repeats, [*BATCH], "left_semi")
    ranges = asked.select(*BATCH, "from_rank", "to_rank")
    own = frames.new_commits.drop("batch_no").join(ranges, "shard")
    index = F.col("rank") - F.col("from_rank") - 1
    of_range = own.where("rank > from_rank AND rank <= to_rank").withColumns(
        {"slot": slot_at(F.col("batch_no"), index), "status": F.lit(None)}
    )
    listed = entries.join(ranges, [*BATCH], "left_semi")
    by_entries = _checksums(listed.withColumn("slot", slot_at(F.col("batch_no"), F.col("index"))))
    both = by_entries.alias("entry").join(_checksums(of_range).alias("commit"), [*BATCH])
    all_new = F.col("entry.listed") == F.col("commit.listed")
    return both.where(all_new & ~_same_messages()).select(*BATCH)


def _same_messages() -> Column:
    """Whether the entries and the commits that were joined have the same checksum."""
    same = [F.col(f"entry.{each}").eqNullSafe(F.col(f"commit.{each}")) for each in CHECKSUM]
    return same[0] & same[1] & same[2]


def _is_kept(kept_from: int, retired_leaves: Collection[int]) -> Column:
    """Whether the commit log still has the whole range of a manifest."""
    first, last = (F.shiftright(name, LEAF_BITS) for name in ("from_xid", "to_xid"))
    beside = [(first > leaf) | (last < leaf) for leaf in retired_leaves]
    return reduce(Column.__and__, beside, F.col("from_xid") >= kept_from)


def _checksums(rows: DataFrame) -> DataFrame:
    """Return per batch the checksum of the half ids at their slots."""
    mixed = F.xxhash64("half_id", "slot")
    batch_no = F.shiftright("slot", INDEX_BITS).alias("batch_no")
    return (
        rows.select("shard", batch_no, "status", mixed.alias("hash"))
        .groupBy(*BATCH)
        .agg(
            F.count("*").alias(CHECKSUM[0]),
            F.bit_xor("hash").alias(CHECKSUM[1]),
            F.sum(F.shiftright("hash", 32)).alias(CHECKSUM[2]),
            F.count(F.when(_is_published(), True)).alias("published_here"),
        )
    )


def _with_records(listed: DataFrame, records: DataFrame) -> DataFrame:
    """Return the batches with a record at the place of an entry that was not published there.

    Where a record is missing instead, the message is LOST.
    """
    partly = manifests.entries(listed.where("published < entries"))
    absent = partly.where(F.col("status").isin(NOT_HERE)).select(*BATCH, "index", "half_id")
    return absent.join(records.where("NOT ahead"), [*BATCH, "index", "half_id"], "left_semi")


def _published_twice(odd: DataFrame, entries: DataFrame, listings: DataFrame) -> DataFrame:
    """Return the odd batches that publish a message for the second time; repairs may do so."""
    asked = entries.where(_is_published()).join(odd, [*BATCH], "left_semi")
    repair = F.coalesce(F.col("kind"), F.lit(int(Kind.BATCH))) == int(Kind.REPAIR)
    published = listings.where(_is_published() & ~repair).select("message_id", *BATCH).distinct()
    twice = (
        published.join(asked.select("message_id"), "message_id", "left_semi")
        .groupBy("message_id")
        .agg(F.count("*").alias("times"))
        .where("times > 1")
    )
    return asked.join(twice, "message_id", "left_semi").select(*BATCH)


def _is_published() -> Column:
    return F.col("status") == PUBLISHED.decode()
