"""The relay's manifests as frames: the fixed-width prefix, the entries and the chain.

The layout is that of ``outbox/messages/manifest.py``. Entries are decoded only for some messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.manifest import ENTRY_BYTES, PREFIX, VERSION, Kind
from spark.columns.slot import half_id_in, number_in

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
FAULT: Final = f"""CASE
    WHEN NOT intact THEN 'not a manifest'
    WHEN version <> {VERSION} THEN 'unknown version'
    WHEN shard <> partition THEN 'another shard\\'s partition'
    WHEN installation <> last_installation THEN 'another installation'
    WHEN NOT first AND batch_no <> last_batch_no + 1 THEN 'gap in batch_no'
    WHEN NOT first AND prev_crc <> last_crc THEN 'prev_crc is not the last crc'
    WHEN gen < last_gen THEN 'gen fell'
    WHEN struct(from_xid, from_n) > struct(to_xid, to_n) THEN 'its range runs backwards'
    WHEN NOT first
        AND kind = {int(Kind.BATCH)}
        AND struct(from_xid, from_n) > struct(last_to_xid, last_to_n)
    THEN 'positions between the two are in no manifest'
END"""
"""The fault of a manifest beside the one before it; null if it has none.

``from`` may be below the last ``to`` after a HISTORY, when PostgreSQL had lost a tail, but a range
never ends before it begins."""


def with_prefix(log: DataFrame) -> DataFrame:
    """Turn the records of the progress topic into manifests: prefix fields, crc, whole value."""
    starts = accumulate((size for _, size in FIELDS), initial=1)
    raw = {
        name: f"substring(value, {at}, {size})"
        for at, (name, size) in zip(starts, FIELDS, strict=False)
    }
    crc = number_in(f"substring(value, -{CRC_BYTES}, {CRC_BYTES})")
    return log.where("value IS NOT NULL").selectExpr(
        *("partition", "offset", "value AS body"),
        f"{raw.pop('installation')} AS installation",
        *(f"{number_in(part)} AS {name}" for name, part in raw.items()),
        f"{crc} AS crc",
        f"""length(value) >= {PREFIX.size + CRC_BYTES}
            AND crc32(substring(value, 1, length(value) - {CRC_BYTES})) = {crc} AS intact""",
    )


def cuts(manifests: DataFrame, anchors: Mapping[int, int] | None = None) -> DataFrame:
    """Return one row per shard: its last batch and position, and where its manifests begin.

    Before the first manifest of a chain there is nothing, or what was published without manifests.
    ``anchors`` are the offsets of known manifests. The row has the crc found at the shard's anchor
    and the lowest position at which a newer manifest begins.
    """
    return (
        manifests.where("intact")
        .selectExpr("*", f"{_by_shard(anchors or {})} AS anchor", "prev_crc = 0 AS begins")
        .groupBy("shard")
        .agg(
            F.expr("max_by(struct(batch_no, to_xid, to_n, offset, crc), offset) AS last"),
            F.expr("""min_by(
                struct(if(begins, 0, from_xid) AS from_xid, if(begins, 0, from_n) AS from_n),
                offset
            ) AS first"""),
            F.expr("count(*) AS manifests"),
            F.expr("max(begins AND batch_no > 1) AS restarted"),
            F.expr("max(if(offset = anchor, crc, NULL)) AS anchor_crc"),
            F.expr("min(if(offset > anchor, struct(from_xid, from_n), NULL)) AS lowest"),
        )
        .select("shard", "last.*", "first.*", "manifests", "restarted", "anchor_crc", "lowest")
    )


def entries(manifests: DataFrame) -> DataFrame:
    """Return one row per listed message: half id, message id, status (P, S or K), batch, index.

    A lambda over the places would copy the whole body for each entry.
    """
    return (
        manifests.where("intact AND entries > 0")
        .selectExpr(
            *("shard", "batch_no", "kind", "body"),
            "explode(sequence(0, int(entries) - 1)) AS index",
        )
        .selectExpr(
            "* EXCEPT (body)",
            f"substring(body, {PREFIX.size + 1} + {ENTRY_BYTES} * index, {ENTRY_BYTES}) AS entry",
        )
        .selectExpr("*", "lower(hex(substring(entry, 1, 16))) AS digits")
        .selectExpr(
            f"{half_id_in('entry')} AS half_id",
            """concat_ws(
                '-',
                substr(digits, 1, 8),
                substr(digits, 9, 4),
                substr(digits, 13, 4),
                substr(digits, 17, 4),
                substr(digits, 21)
            ) AS message_id""",
            f"string(substring(entry, {ENTRY_BYTES}, 1)) AS status",
            *("shard", "batch_no", "index", "kind"),
        )
    )


def newer_than(manifests: DataFrame, batches: Mapping[int, int]) -> DataFrame:
    """Return the manifests after these batches, given by shard."""
    return manifests.where(f"batch_no > {_by_shard(batches)}")


def breaks(manifests: DataFrame) -> DataFrame:
    """Return the manifests that do not continue the one before them on their shard (I9).

    A new chain begins after a loss of the manifests.
    """
    chained = manifests.selectExpr(
        "*",
        *(
            f"lag({name}) OVER (PARTITION BY partition ORDER BY offset) AS last_{name}"
            for name in ("batch_no", "crc", "gen", "to_xid", "to_n", "installation")
        ),
    ).selectExpr(
        "*",
        "last_batch_no IS NULL OR (prev_crc = 0 AND batch_no > last_batch_no) AS first",
    )
    found = chained.selectExpr("partition", "offset", "batch_no", f"{FAULT} AS fault")
    return found.where("fault IS NOT NULL")


def _by_shard(numbers: Mapping[int, int]) -> str:
    """Return the SQL for the number given for a manifest's shard, or -1."""
    cases = " ".join(f"WHEN {shard} THEN {number}" for shard, number in numbers.items())
    return f"CASE shard {cases} ELSE -1 END" if cases else "-1"
