"""Where a record says it belongs: relay shard, batch and index, and the half id in its message id.

All are the writer's words, used to arrange the comparison and never believed: a wrong one makes a
record match nothing, which is found. A *slot* is a batch and an index in one number.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.messages import record
from outbox.messages.manifest import MAX_ENTRIES
from outbox.messages.message_id import SHARDS
from spark.columns import digest

MESSAGE_ID: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
"""The canonical text of a UUIDv8 (RFC 9562)."""
ID_BYTES: Final = 36
INDEX_BITS: Final = (MAX_ENTRIES - 1).bit_length()
"""Of a slot; the others tell the batch."""


def id_text() -> Column:
    """Return what may be the record's message id, by its length alone."""
    text = digest.leading(record.MESSAGE_ID)
    return F.when(F.octet_length(text) == ID_BYTES, text)


def identified(records: DataFrame) -> DataFrame:
    """Return the records with their ``half_id``, null unless the message id is well formed.

    Spark looks only when asked. It costs half as much as to read the record, so a step that takes
    all records should not ask.
    """
    text = F.col("message_id")
    return records.withColumn("half_id", F.when(text.rlike(MESSAGE_ID), half_id_in(text)))


def half_id_in(uuid: Column) -> Column:
    """Return the half id that a message id's canonical text embeds.

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


def uuid_text(sixteen_bytes: Column) -> Column:
    """Return the canonical text of a message id that is given as 16 bytes."""
    digits = F.lower(F.hex(sixteen_bytes))
    parts = [digits.substr(start, size) for start, size in ((1, 8), (9, 4), (13, 4), (17, 4))]
    return F.concat_ws("-", *parts, digits.substr(21, 12))


def batch() -> Column:
    """Return the batch header's text: relay shard, batch, and the place in it, with dots."""
    return digest.leading(record.BATCH)


def slotted(records: DataFrame) -> DataFrame:
    """Return the records with the ``slot`` that each names, up to the cut of its shard; or null."""
    named = slot_at(F.col("batch_no"), F.col("index"))
    return records.withColumn("slot", F.when(F.col("batch_no") <= F.col("cut_batch"), named))


def slot_at(batch_no: Column, index: Column) -> Column:
    """Return the slot of a place in a batch; null where no batch has such a place."""
    possible = (index >= 0) & (index < MAX_ENTRIES)
    return F.when(possible, F.shiftleft(batch_no, INDEX_BITS).bitwiseOR(index.cast("bigint")))


def shard() -> Column:
    """Return the relay shard that ``batch`` names; null for an odd header."""
    return F.when(index().isNotNull(), _first().try_cast("int"))


def batch_no() -> Column:
    """Return the relay batch that ``batch`` names."""
    return F.when(index().isNotNull(), _middle().try_cast("bigint"))


def index() -> Column:
    """Return the place that ``batch`` names; no number where it has not three parts."""
    return _behind(_middle(), _behind(_first(), F.col("batch"))).try_cast("int")


def ahead() -> Column:
    """Tell whether a record belongs to a batch newer than its shard's cut: it is not judged yet.

    Needs the columns of the shard's cut. A shard without any manifest has no cut: all is ahead. A
    header that names another shard than the message id is no excuse.
    """
    newer = F.col("cut_batch").isNull() | (F.col("batch_no") > F.col("cut_batch"))
    own = F.col("shard") % SHARDS == F.col("half_id").bitwiseAND(SHARDS - 1)
    return F.coalesce(F.col("batch_no").isNotNull() & newer & own, F.lit(False))


def _first() -> Column:
    return F.substring_index("batch", ".", 1)


def _middle() -> Column:
    return F.substring_index(_behind(_first(), F.col("batch")), ".", 1)


def _behind(part: Column, text: Column) -> Column:
    """Return what follows a part and its dot; each record pays for it, so no text is split."""
    return F.substring(text, F.length(part) + 2, F.length(text))
