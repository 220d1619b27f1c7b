"""The content digest and the header places of a record, as Column expressions.

Equal bit for bit to ``outbox/messages/content_digest.py``: Spark's ``xxhash64`` chains its
arguments with seed 42 and skips nulls, and an array of (name, value) is chained element by element.
A zero byte follows the name of a header whose value is null.
Headers are read by place (``outbox/messages/record.py``) and searched by name only where the
places do not fit.

A column never changes, and each call that builds one goes to the JVM. So what many columns share is
built once per process.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from outbox.messages import record
from outbox.messages.message import Headers
from outbox.reconciliation.log import LogRecord

LEADING: Final = (record.MESSAGE_ID, record.BATCH, record.DECIDED_BY)
UNCOVERED: Final = (*LEADING, record.REDRIVEN)
NO_SUCH: Final = sha256(b"the value of no header").digest()
"""Where an array has it not, a search for it returns null if the array has a null."""


@cache
def headers() -> Column:
    """Return the headers of a record, none as an empty array."""
    return F.coalesce(F.col("headers"), F.array().cast("array<struct<key:string,value:binary>>"))


@cache
def in_place() -> Column:
    """Whether the leading headers are at the places that the contract names."""
    fits = [F.get("headers", place)["key"] == name for place, name in enumerate(LEADING)]
    return F.coalesce(fits[0] & fits[1] & fits[2], F.lit(False))


@cache
def leading(name: str) -> Column:
    """Return the text of a leading header: by place, else the first of that name, else null."""
    by_place = F.get("headers", LEADING.index(name))["value"]
    return F.when(in_place(), by_place).otherwise(_by_name(name)).cast("string")


@cache
def has_header(name: str) -> Column:
    """Whether a record has a header of this name, with or without a value."""
    return F.coalesce(F.array_contains(headers()["key"], name), F.lit(False))


@cache
def redriven() -> Column:
    """Whether a repair published this record."""
    return F.when(in_place(), _fourth_is_redriven()).otherwise(has_header(record.REDRIVEN))


@cache
def repair() -> Column:
    """Return the text of the repair that published this record; null for any other record."""
    by_place = F.get("headers", len(LEADING))["value"]
    somewhere = F.when(in_place(), by_place).otherwise(_by_name(record.REDRIVEN))
    return F.when(redriven(), somewhere.cast("string"))


@cache
def covered() -> Column:
    """Return the headers that the digest covers, in record order.

    Spark does not compile a lambda, but only a record with headers out of order pays for it. Four
    removals by place would make a method too long for the JVM's compiler and cost 9 µs per record.
    """
    first = F.when(_fourth_is_redriven(), len(UNCOVERED) + 1).otherwise(len(LEADING) + 1)
    by_place = F.slice("headers", first, F.size("headers"))
    by_name = F.filter(headers(), lambda header: ~header["key"].isin(*UNCOVERED))
    found = F.when(in_place(), by_place).otherwise(by_name)
    has_nulls = F.array_contains(found["value"], NO_SUCH).isNull()
    return F.when(has_nulls, F.transform(found, _marked)).otherwise(found)


def content_digest() -> Column:
    """Return the signed 64-bit digest of id, topic, presence flag, key, value and headers."""
    no_key, no_value = F.col("key").isNull(), F.col("value").isNull()
    flag = (
        F.when(~no_key & ~no_value, "kv").when(~no_key, "k-").when(~no_value, "-v").otherwise("--")
    )
    return F.xxhash64(leading(record.MESSAGE_ID), "topic", flag, "key", "value", covered())


@cache
def key_hash() -> Column:
    """Return the hash that stands for a key in reports; null for a record without a key."""
    return F.when(F.col("key").isNotNull(), F.xxhash64(F.col("key")))


@cache
def producer_group() -> Column:
    """Return the producer group that a record names in its place; null if it names none there."""
    place = F.when(_fourth_is_redriven(), len(UNCOVERED)).otherwise(len(LEADING))
    first = F.get("headers", place)
    return F.when(first["key"] == record.PRODUCER_GROUP, first["value"]).cast("string")


def covered_in(found: LogRecord) -> Headers:
    """Return the headers that the digest of the record covers."""
    names = tuple(name for name, _ in found.headers)
    if names[: len(LEADING)] == LEADING:
        return found.headers[len(LEADING) + (names[len(LEADING) :][:1] == (record.REDRIVEN,)) :]
    return tuple(header for header in found.headers if header[0] not in UNCOVERED)


def message_id_in(found: LogRecord) -> bytes | None:
    """Return the message id of the record, None without one."""
    return next((value for name, value in found.headers if name == record.MESSAGE_ID), None)


def _marked(header: Column) -> Column:
    """Return a header with a zero byte behind its name if its value is null."""
    name = F.when(header["value"].isNull(), F.concat(header["key"], F.lit("\0")))
    return F.struct(name.otherwise(header["key"]).alias("key"), header["value"].alias("value"))


@cache
def _fourth_is_redriven() -> Column:
    fourth = F.get("headers", len(LEADING))["key"]
    return F.coalesce(fourth == record.REDRIVEN, F.lit(False))


@cache
def _by_name(name: str) -> Column:
    """Return the value of the first header of a name."""
    place = F.array_position(headers()["key"], name) - 1
    return F.get(headers()["value"], place.cast("int"))
