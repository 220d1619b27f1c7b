"""The relay's manifests as Column expressions: the fixed-width prefix, the entries and the chain.

The layout is that of ``outbox/messages/manifest.py``. Entries are decoded only for some messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from outbox.messages.manifest import ENTRY_BYTES, PREFIX, VERSION, Kind
from spark.columns import slot

FIELDS: Final = (
    ("version", 1),
    ("installation", 16),
    ("shard", 2),
    ("gen", 8),
    ("kind", 1),
    ("batch_no", 8),
    ("prev_crc", 4),
    ("from_xid", 8),
    ("from_n", 4),
    ("to_xid", 8),
    ("to_n", 4),
    ("entries", 4),
    ("published", 4),
)
"""The fields of the prefix with their sizes in bytes."""
CRC_BYTES: Final = 4


def with_prefix(log: DataFrame) -> DataFrame:
    """Turn the records of the progress topic into manifests: prefix fields, crc, whole value."""
    return log.where("value IS NOT NULL").select("partition", "offset", *_parts())


def cuts(manifests: DataFrame, anchors: Mapping[int, int] | None = None) -> DataFrame:
    """Return one row per shard: its last batch and position, and where its manifests begin.

    Before the first manifest of a chain there is nothing, or what was published without manifests.
    ``anchors`` are the offsets of known manifests. The row has the crc found at the shard's anchor
    and the lowest position at which a newer manifest begins.
    """
    last = F.max_by(F.struct("batch_no", "to_xid", "to_n", "offset", "crc"), "offset")
    anchor = F.coalesce(_by_shard(anchors or {}), F.lit(-1))
    newer = F.when(F.col("offset") > anchor, F.struct("from_xid", "from_n"))
    begins = F.when(~_begins_a_chain(), F.struct("from_xid", "from_n"))
    first = F.min_by(F.coalesce(begins, _before_all()), "offset")
    restarted = F.max(_begins_a_chain() & (F.col("batch_no") > 1))
    return (
        manifests.where("intact")
        .groupBy("shard")
        .agg(
            last.alias("last"),
            first.alias("first"),
            F.count("*").alias("manifests"),
            restarted.alias("restarted"),
            F.max(F.when(F.col("offset") == anchor, F.col("crc"))).alias("anchor_crc"),
            F.min(newer).alias("lowest"),
        )
        .select("shard", "last.*", "first.*", "manifests", "restarted", "anchor_crc", "lowest")
    )


def entries(manifests: DataFrame) -> DataFrame:
    """Return one row per listed message: half id, message id, status (P, S or K), batch, index."""
    listed = manifests.where("intact AND entries > 0").select(
        "shard", "batch_no", "kind", _each_entry()
    )
    return listed.select(*_entry_parts(), "shard", "batch_no", "index", "kind")


def newer_than(manifests: DataFrame, batches: Mapping[int, int]) -> DataFrame:
    """Return the manifests after these batches, given by shard."""
    return manifests.where(F.col("batch_no") > F.coalesce(_by_shard(batches), F.lit(-1)))


def breaks(manifests: DataFrame) -> DataFrame:
    """Return the manifests that do not continue the one before them on their shard (I9)."""
    before = Window.partitionBy("partition").orderBy("offset")
    previous = [F.lag(name).over(before).alias(f"last_{name}") for name in _CHAINED]
    chained = manifests.select("*", *previous)
    return chained.select("partition", "offset", "batch_no", _fault().alias("fault")).where(
        F.col("fault").isNotNull()
    )


_CHAINED: Final = ("batch_no", "crc", "gen", "to_xid", "to_n", "installation")


@cache
def _fault() -> Column:
    """Return the fault of a manifest; null if it has none.

    ``from`` may be below the last ``to`` after a HISTORY, when PostgreSQL had lost a tail, but a
    range never ends before it begins. A new chain begins after a loss of the manifests.
    """
    first = F.col("last_batch_no").isNull() | (
        _begins_a_chain() & (F.col("batch_no") > F.col("last_batch_no"))
    )
    position = F.struct("from_xid", "from_n")
    ordered = position <= F.struct("to_xid", "to_n")
    faults = (
        (~F.col("intact"), "not a manifest"),
        (F.col("version") != VERSION, "unknown version"),
        (F.col("shard") != F.col("partition"), "another shard's partition"),
        (F.hex("installation") != F.hex("last_installation"), "another installation"),
        (~first & (F.col("batch_no") != F.col("last_batch_no") + 1), "gap in batch_no"),
        (~first & (F.col("prev_crc") != F.col("last_crc")), "prev_crc is not the last crc"),
        (F.col("gen") < F.col("last_gen"), "gen fell"),
        (~ordered, "its range runs backwards"),
        (
            ~first
            & (F.col("kind") == int(Kind.BATCH))
            & (position > F.struct(F.col("last_to_xid"), F.col("last_to_n"))),
            "positions between the two are in no manifest",
        ),
    )
    return F.coalesce(*[F.when(wrong, F.lit(name)) for wrong, name in faults])


def _by_shard(offsets: Mapping[int, int]) -> Column:
    """Return the offset given for a manifest's shard, or null."""
    pairs = [F.lit(each).cast("bigint") for pair in (offsets or {-1: -1}).items() for each in pair]
    return F.try_element_at(F.create_map(*pairs), F.col("shard"))


def _begins_a_chain() -> Column:
    return F.col("prev_crc") == 0


def _before_all() -> Column:
    zeros = (F.lit(0).cast("bigint").alias(name) for name in ("from_xid", "from_n"))
    return F.struct(*zeros)


@cache
def _parts() -> tuple[Column, ...]:
    """Return the columns of a manifest; see ``with_prefix``."""
    body = F.col("value")
    crc_at = F.length(body) - CRC_BYTES
    crc = _number(body, crc_at, F.lit(CRC_BYTES))
    intact = F.crc32(F.substring(body, F.lit(1), crc_at)) == crc
    whole = F.length(body) >= PREFIX.size + CRC_BYTES
    return (
        *(column.alias(name) for name, column in _prefix(body).items()),
        crc.alias("crc"),
        F.coalesce(whole & intact, F.lit(False)).alias("intact"),
        body.alias("body"),
    )


@cache
def _each_entry() -> Column:
    places = F.sequence(F.lit(0), F.col("entries") - 1)
    return F.posexplode(F.transform(places, _entry)).alias("index", "entry")


@cache
def _entry_parts() -> tuple[Column, ...]:
    message_id = F.substring("entry", 1, 16)
    return (
        slot.half_id_in_bytes(message_id).alias("half_id"),
        slot.uuid_text(message_id).alias("message_id"),
        F.substring("entry", ENTRY_BYTES, 1).cast("string").alias("status"),
    )


def _prefix(body: Column) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    at = 0
    for name, size in FIELDS:
        raw = F.substring(body, at + 1, size)
        columns[name] = raw if name == "installation" else slot.number(raw)
        at += size
    return columns


def _entry(place: Column) -> Column:
    start = place * ENTRY_BYTES + PREFIX.size + 1
    return F.substring(F.col("body"), start, F.lit(ENTRY_BYTES))


def _number(body: Column, at: Column, size: Column) -> Column:
    return slot.number(F.substring(body, at + 1, size))
