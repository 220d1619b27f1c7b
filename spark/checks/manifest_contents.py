"""Compares what the manifests list with the commit log and with the records.

A message has one place in the commit log, so a batch whose entries are the commits of its range
lists no message of another such batch. Only the other batches are searched for messages that are
published twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.manifest import Kind
from outbox.messages.message_id import LEAF_BITS
from spark.checks.queries import query
from spark.columns import manifests
from spark.columns.frames import Frames
from spark.columns.slot import INDEX_BITS
from spark.columns.staging import stage_counted

OTHER_ENTRIES: Final = "its entries are not the commits of its range"
OTHER_COUNT: Final = "it does not publish as many entries as it says"
UNLISTED_RECORD: Final = "a record is in the batch that it does not publish there"
PUBLISHED_TWICE: Final = "it publishes a message that another manifest publishes too"

BATCH: Final = ["shard", "batch_no"]
DOUBTS: Final = ("odd", "differs", "repeats", "miscounted", "partly")
"""What makes a manifest worth a closer look; without any of them no record is looked at."""


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
    listed = manifests.newer_than(frames.manifests, judged).where("intact")
    commits = frames.commits.where("slot IS NOT NULL")
    compared = query(
        "manifest_contents",
        listed=listed,
        checksums=_checksums(manifests.entries(listed), commits),
        kept_from=kept_from,
        retired_leaves=sorted(leaf for leaf in retired_leaves if leaf >= kept_from >> LEAF_BITS),
        leaf_bits=LEAF_BITS,
        batch=int(Kind.BATCH),
        release=int(Kind.RELEASE),
    )
    doubts = {name: F.count_if(name) for name in DOUBTS}
    staged, seen = stage_counted(compared, f"{frames.stage_uri}/manifest_contents", **doubts)
    doubtful = {name: staged.where(name).select(*BATCH) for name in DOUBTS if seen[name]}
    faults = [
        found.select(*BATCH, F.lit(fault).alias("fault"))
        for found, fault in _faulty(doubtful, listed, frames)
    ]
    if not faults:
        return None
    faulty = reduce(DataFrame.union, faults).distinct()
    return listed.join(faulty, BATCH).select("partition", "offset", "batch_no", "fault")


def _faulty(
    doubtful: Mapping[str, DataFrame], listed: DataFrame, frames: Frames
) -> Iterator[tuple[DataFrame, str]]:
    """Yield the batches of each doubt that are faulty, and the fault."""
    entries = manifests.entries(listed)
    if "differs" in doubtful:
        yield doubtful["differs"], OTHER_ENTRIES
    if "repeats" in doubtful:
        yield _differing_by_rank(doubtful["repeats"], entries, frames), OTHER_ENTRIES
    if "miscounted" in doubtful:
        yield doubtful["miscounted"], OTHER_COUNT
    if "partly" in doubtful:
        partly = manifests.entries(listed.where("published < entries"))
        yield query("manifest_unlisted", entries=partly, records=frames.records), UNLISTED_RECORD
    if "odd" in doubtful:
        odd, listings = doubtful["odd"], frames.listings
        asked = {"entries": entries, "odd": odd, "listings": listings, "repair": int(Kind.REPAIR)}
        yield query("manifest_twice", **asked), PUBLISHED_TWICE


def _differing_by_rank(repeats: DataFrame, entries: DataFrame, frames: Frames) -> DataFrame:
    """Return those of the batches whose entries are not the commits of their ranges.

    PostgreSQL had lost the position of the shard, so the batch begins again before commits that
    earlier batches have listed. It is compared only if all of them are new: those that an earlier
    run has judged are not read again.
    """
    whole = frames.batches.where("whole").join(repeats, BATCH, "left_semi")
    commits = query("manifest_ranges", commits=frames.commits, batches=whole, index_bits=INDEX_BITS)
    sums = _checksums(entries.join(whole, BATCH, "left_semi"), commits)
    return sums.where("surplus = 0 AND (mixed <> 0 OR summed <> 0)")


def _checksums(entries: DataFrame, commits: DataFrame) -> DataFrame:
    """Return by batch how its entries differ from the commits at its slots."""
    return query("manifest_checksums", entries=entries, commits=commits, index_bits=INDEX_BITS)
