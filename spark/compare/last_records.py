"""The last records of a log: per partition as its anchor, and per key.

A compacted topic keeps only the last record of a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from xxhash import xxh64_intdigest

from outbox.messages.manifest import Kind, Position
from outbox.messages.message_id import SHARDS, HalfId, shard_in
from outbox.reconciliation.log import LogReader, Partition
from spark.compare.evidence import Suspect
from spark.compare.expiry import newest_place
from spark.compare.facts import Judgement, may_be_compacted
from spark.compare.field_diff import message_id_in
from spark.compare.tombstones import Tombstones
from spark.cut.log_state import Anchor

SEED: Final = 42

KEY_COLUMNS: Final = (
    *("topic", "partition", "offset", "key_hash", "shard", "batch_no", "index", "carried"),
)
"""Columns of a record by which records of a key are compared."""

Place = tuple[Partition, int]
"""A partition and an offset in it."""


def anchors(records: DataFrame) -> dict[Partition, Anchor]:
    """Return our last record in each partition that was read."""
    last = F.max_by(F.struct("offset", "digest"), "offset").alias("last")
    rows = (
        records.where(F.col("message_id").isNotNull())
        .groupBy("topic", "partition")
        .agg(last)
        .select("topic", "partition", "last.*")
        .collect()
    )
    return {Partition(r["topic"], r["partition"]): Anchor(r["offset"], r["digest"]) for r in rows}


def retired_ends(manifests: DataFrame, kept_from: int) -> dict[int, Position]:
    """Return per shard the end of its last batch with messages below a transaction id."""
    batches = (F.col("kind") == int(Kind.BATCH)) & (F.col("entries") > 0)
    rows = (
        manifests.where(F.col("intact") & batches & (F.col("to_xid") < kept_from))
        .groupBy("shard")
        .agg(F.max(F.struct("to_xid", "to_n")).alias("end"))
        .collect()
    )
    return {row["shard"]: Position(*row["end"]) for row in rows}


def with_superseded(
    suspects: Sequence[Suspect],
    judgement: Judgement,
    records: DataFrame,
    tombstones: Tombstones,
    log_reader: LogReader,
) -> tuple[Suspect, ...]:
    """Mark the messages whose record compaction may have removed; at most 1 000 at a time."""
    asked = [each for each in suspects if may_be_compacted(each, judgement)]
    if not asked:
        return tuple(suspects)
    newest = _newest(records, {key_hash(each) for each in asked})
    superseded = [each for each in asked if is_superseded(each, newest) or tombstones.explain(each)]
    spared = _spared(superseded, newest, log_reader)
    compacted = {each.half_id for each in superseded} - spared
    return tuple(replace(each, superseded=each.half_id in compacted) for each in suspects)


def missing_tombstone_topics(suspects: Iterable[Suspect], judgement: Judgement) -> frozenset[str]:
    """Return the topics of tombstones with a recorded place that compaction may have removed."""
    return frozenset(
        each.known.half.message.topic
        for each in suspects
        if each.known is not None and each.known.half.message.value is None
        if each.place is not None and may_be_compacted(each, judgement)
    )


def older_record(suspect: Suspect, newest: Iterable[Any]) -> int | None:
    """Return the offset of an older record of the key in the partition of a missing one.

    Compaction removes the older records of a key first, a tombstone last. So if there is one, it
    has not removed the missing record. None without a recorded place.
    """
    assert suspect.known is not None
    place, topic = suspect.place, suspect.known.half.message.topic
    if place is None:
        return None
    wanted = (topic, place.partition, key_hash(suspect))
    oldest = [
        row["oldest"]
        for row in newest
        if (row["topic"], row["partition"], row["key_hash"]) == wanted
    ]
    older = (each for each in oldest if each is not None and each < place.offset)
    return min(older, default=None)


def _spared(
    suspects: Sequence[Suspect], newest: Sequence[Any], log_reader: LogReader
) -> frozenset[HalfId]:
    """Return the messages that compaction has not removed.

    Their older records are read once more, and so are their own places: compaction may have worked
    while the run was reading.
    """
    older: dict[HalfId, tuple[Place, Place]] = {}
    for each in suspects:
        offset = older_record(each, newest)
        if each.place is not None and offset is not None and each.known is not None:
            partition = Partition(each.known.half.message.topic, each.place.partition)
            older[each.half_id] = (partition, offset), (partition, each.place.offset)
    wanted = {place for both in older.values() for place in both}
    found = {(r.partition, r.offset): r for r in log_reader.records(sorted(wanted))}
    ids = {place: message_id_in(record) for place, record in found.items()}
    own_ids = {each.half_id: str(each.message_id).encode() for each in suspects}
    return frozenset(
        half_id
        for half_id, (kept, own) in older.items()
        if kept in found and ids.get(own) != own_ids[half_id]
    )


def is_superseded(suspect: Suspect, newest: Iterable[Any]) -> bool:
    """Whether a later record of the key, or the age of a tombstone, explains a missing record.

    ``newest`` are rows of topic, partition, key_hash and shard, with the last offset, the last
    place in the batches of the shard, and the oldest offset that this run has read.
    """
    assert suspect.known is not None
    message = suspect.known.half.message
    if message.value is None:
        return True
    wanted = key_hash(suspect)
    return any(
        row["key_hash"] == wanted and row["topic"] == message.topic and _is_later(row, suspect)
        for row in newest
    )


def _is_later(row: Any, suspect: Suspect) -> bool:
    """Whether a record of the key may be later than the one that is missing.

    The relay records places after it has published, so the newest ones may not be recorded yet. The
    batch shows the order then, if both name one of the same shard.
    """
    place = suspect.place
    if place is not None:
        return bool(row["partition"] == place.partition and row["offset"] > place.offset)
    listed, shard = newest_place(suspect), row["shard"]
    if listed is None or shard is None or shard % SHARDS != shard_in(suspect.half_id):
        return True
    return (row["batch_no"], row["index"]) > listed


def key_hash(suspect: Suspect) -> int:
    """Return the hash of a message's key, as ``spark/columns/digest.py`` computes it."""
    key = suspect.known.half.message.key if suspect.known else None
    digest = xxh64_intdigest(key or b"", SEED)
    return digest - (1 << 64) if digest >= 1 << 63 else digest


def _newest(records: DataFrame, key_hashes: set[int]) -> list[Any]:
    return (
        records.where(F.col("key_hash").isin(*key_hashes))
        .groupBy("topic", "partition", "key_hash", "shard")
        .agg(
            F.max("offset").alias("offset"),
            F.max(F.struct("batch_no", "index")).alias("last"),
            F.min(F.when(~F.col("carried"), F.col("offset"))).alias("oldest"),
        )
        .select("topic", "partition", "key_hash", "shard", "offset", "last.*", "oldest")
        .collect()
    )
