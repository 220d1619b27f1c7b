"""The place that a record claims: relay shard, batch and index, and the half id in its message id.

The writer sets all of these. They only arrange the comparison and are never trusted: a record with
a wrong one matches nothing, which is found. A *slot* is a batch and an index in one number.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from outbox.messages import record
from outbox.messages.manifest import MAX_ENTRIES
from outbox.messages.message_id import LOW_BITS, SHARDS
from spark.columns import digest

MESSAGE_ID: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
"""The canonical text of a UUIDv8 (RFC 9562)."""
ID_BYTES: Final = 36
SHOWN_CHARACTERS: Final = 64
"""Of a malformed message id no more is kept."""
INDEX_BITS: Final = (MAX_ENTRIES - 1).bit_length()
"""Bits of the index in a slot; the other bits are the batch."""


@cache
def id_text() -> Column:
    """Return the text that a record gives as its message id; null if it has no such header.

    A header without a value gives an empty text.
    """
    text = digest.leading(record.MESSAGE_ID)
    right_size = F.octet_length(text) == ID_BYTES
    given = F.when(right_size, text).otherwise(F.substring(text, 1, SHOWN_CHARACTERS))
    return F.coalesce(given, F.when(digest.has_header(record.MESSAGE_ID), F.lit("")))


@cache
def repair_text() -> Column:
    """Return which repair a record says it is; null for any other record."""
    return F.substring(digest.repair(), 1, SHOWN_CHARACTERS)


def with_half_id(records: DataFrame) -> DataFrame:
    """Return the records with their ``half_id``, null unless the message id is well formed.

    Spark computes the column only where it is used. That costs half as much as reading the record,
    so a step over all records should not use it.
    """
    text = F.col("message_id")
    return records.withColumn("half_id", F.when(text.rlike(MESSAGE_ID), half_id_in(text)))


def half_id_in(uuid: Column) -> Column:
    """Return the half id in the canonical text of a message id.

    The first 48 bits are its high part, the 12 bits after the version and the 3 after the variant
    its low part (``outbox/messages/message_id.py``).
    """
    digits = F.concat(uuid.substr(1, 8), uuid.substr(10, 4), uuid.substr(16, 3))
    variant, last = uuid.substr(20, 1), uuid.substr(21, 1)
    bits = (variant >= "a", variant.isin("9", "b"), last >= "8")
    low = sum(
        (bit.cast("bigint") * weight for bit, weight in zip(bits, (4, 2, 1), strict=True)), F.lit(0)
    )
    return F.shiftleft(F.conv(digits, 16, 10).cast("bigint"), 3) + low


def half_id_in_bytes(sixteen_bytes: Column) -> Column:
    """Return the half id in a message id given as 16 bytes, without its text."""
    parts = ((1, 6), (7, 2), (9, 1))
    high, middle, last = (number(F.substring(sixteen_bytes, *each)) for each in parts)
    low = F.shiftleft(middle.bitwiseAND(0xFFF), 3) + F.shiftright(last, 3).bitwiseAND(0b111)
    return F.shiftleft(high, LOW_BITS) + low


def uuid_text(sixteen_bytes: Column) -> Column:
    """Return the canonical text of a message id given as 16 bytes."""
    parts = ((1, 4), (5, 2), (7, 2), (9, 2), (11, 6))
    digits = (F.hex(F.substring(sixteen_bytes, *each)) for each in parts)
    return F.lower(F.concat_ws("-", *digits))


def number(big_endian: Column) -> Column:
    """Return the unsigned number in up to eight bytes."""
    return F.conv(F.hex(big_endian), 16, 10).cast("bigint")


@cache
def batch() -> Column:
    """Return the text of the batch header: relay shard, batch and index, separated by dots."""
    return digest.leading(record.BATCH)


def with_slot(records: DataFrame) -> DataFrame:
    """Return the records with the ``slot`` that each names; null above the cut of its shard."""
    named = slot_at(F.col("batch_no"), F.col("index"))
    return records.withColumn("slot", F.when(F.col("batch_no") <= F.col("cut_batch"), named))


def with_ahead(records: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the records with the cut of the shard that they name, and whether they are ahead."""
    return records.join(F.broadcast(cuts), "shard", "left").withColumn("ahead", is_ahead())


def record_counts() -> dict[str, Column]:
    """Return the numbers of new records ahead of the cut, not ours, or without a half id."""
    conditions = {
        "ahead": F.col("ahead"),
        "foreign": F.col("message_id").isNull(),
        "unnamed": F.col("half_id").isNull(),
    }
    return {name: F.count_if(~F.col("carried") & each) for name, each in conditions.items()}


def slot_at(batch_no: Column, index: Column) -> Column:
    """Return the slot of an index in a batch; null where no batch has such an index."""
    possible = (index >= 0) & (index < MAX_ENTRIES)
    return F.when(possible, F.shiftleft(batch_no, INDEX_BITS).bitwiseOR(index.cast("bigint")))


@cache
def shard() -> Column:
    """Return the relay shard that ``batch`` names; null for a malformed header."""
    return F.when(index().isNotNull(), _first().try_cast("int"))


@cache
def batch_no() -> Column:
    """Return the relay batch that ``batch`` names."""
    return F.when(index().isNotNull(), _middle().try_cast("bigint"))


@cache
def index() -> Column:
    """Return the index that ``batch`` names; null where the header has not three parts."""
    return _rest_after(_middle(), _rest_after(_first(), F.col("batch"))).try_cast("int")


def is_ahead() -> Column:
    """Whether a record belongs to a batch newer than its shard's cut, so that it is not judged yet.

    Needs the columns of the shard's cut. A shard without any manifest has no cut: its records are
    ahead. A record is not ahead if its header names another shard than its message id, or a batch
    that no relay can have published.
    """
    newer = F.col("cut_batch").isNull() | (F.col("batch_no") > F.col("cut_batch"))
    own = F.col("shard") % SHARDS == F.col("half_id").bitwiseAND(SHARDS - 1)
    possible = F.col("batch_no") <= F.col("newest_batch")
    return F.coalesce(possible & newer & own, F.lit(False))


@cache
def _first() -> Column:
    return F.substring_index("batch", ".", 1)


@cache
def _middle() -> Column:
    return F.substring_index(_rest_after(_first(), F.col("batch")), ".", 1)


def _rest_after(part: Column, text: Column) -> Column:
    """Return the text after a part and its dot; cheaper per record than a split."""
    return F.substring(text, F.length(part) + 2, F.length(text))
