"""The place that a record claims: relay shard, batch and index, and the half id in its message id.

The writer sets all of these. They only arrange the comparison and are never trusted: a record with
a wrong one matches nothing, which is found. A *slot* is a batch and an index in one number.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from outbox.messages.manifest import MAX_ENTRIES
from outbox.messages.message_id import SHARDS

MESSAGE_ID: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
"""The canonical text of a UUIDv8 (RFC 9562)."""
INDEX_BITS: Final = (MAX_ENTRIES - 1).bit_length()
"""Bits of the index in a slot; the other bits are the batch."""


def half_id_in(message_id: str) -> str:
    """Return the SQL for the half id in the 16 bytes of a message id.

    The first 48 bits are its high part, the 12 bits after the version and the 3 after the variant
    its low part (``outbox/messages/message_id.py``). The 16 is the variant: with another one it is
    no half id.
    """
    low = number_in(f"substring({message_id}, 7, 3)")
    return f"""(
        shiftleft({number_in(f"substring({message_id}, 1, 6)")}, 15)
        + shiftleft(shiftright({low}, 8) & 4095, 3)
        + ((shiftright({low}, 3) & 31) - 16)
    )"""


def number_in(big_endian: str) -> str:
    """Return the SQL for the unsigned number in up to eight bytes."""
    return f"bigint(conv(hex({big_endian}), 16, 10))"


def with_half_id(records: DataFrame) -> DataFrame:
    """Return the records with their ``half_id``, null unless the message id is well formed.

    Spark computes the column only where it is used. That costs half as much as reading the record,
    so a step over all records should not use it.
    """
    half_id = half_id_in("unhex(replace(message_id, '-'))")
    return records.withColumn(
        "half_id", F.expr(f"CASE WHEN message_id RLIKE '{MESSAGE_ID}' THEN {half_id} END")
    )


def with_slot(records: DataFrame) -> DataFrame:
    """Return the records with the ``slot`` that each names.

    It is null above the cut of its shard, and for a record that is written ``again``.
    """
    named = slot_at(F.col("batch_no"), F.col("index"))
    claimed = F.expr("batch_no <= cut_batch AND NOT again")
    return records.withColumn("slot", F.when(claimed, named))


def with_again(records: DataFrame, batches: DataFrame, ends: DataFrame) -> DataFrame:
    """Return the records, and whether each was written ``again``.

    It was if the previous run had read the batch that it names before it was written. ``batches``
    are ``schemas.KNOWN_BATCHES``, ``ends`` are ``schemas.KNOWN_ENDS``.
    """
    again = "coalesce(offset >= known_end AND batch_no <= known_batch, false) AS again"
    return (
        records.join(F.broadcast(batches), "shard", "left")
        .join(F.broadcast(ends), ["topic", "partition"], "left")
        .selectExpr("* EXCEPT (known_batch, known_end)", again)
    )


def with_ahead(records: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the records with the cut of the shard that they name, and whether they are ahead.

    A record is ahead if it belongs to a batch newer than its shard's cut, so that it is not judged
    yet. A shard without any manifest has no cut: its records are ahead. A record is not ahead if
    its header names another shard than its message id, or a batch that no relay can have published.
    """
    ahead = f"""coalesce(
        batch_no <= newest_batch
        AND (cut_batch IS NULL OR batch_no > cut_batch)
        AND shard % {SHARDS} = half_id & {SHARDS - 1},
        false
    )"""
    return records.join(F.broadcast(cuts), "shard", "left").withColumn("ahead", F.expr(ahead))


def record_counts() -> dict[str, Column]:
    """Return the numbers of records ahead of the cut, not ours, or without a half id."""
    return {
        "ahead": F.expr("count_if(ahead)"),
        "foreign": F.expr("count_if(message_id IS NULL)"),
        "unnamed": F.expr("count_if(half_id IS NULL)"),
    }


def slot_at(batch_no: Column, index: Column) -> Column:
    """Return the slot of an index in a batch; null where no batch has such an index."""
    possible = (index >= 0) & (index < MAX_ENTRIES)
    return F.when(possible, F.shiftleft(batch_no, INDEX_BITS).bitwiseOR(index.cast("bigint")))
