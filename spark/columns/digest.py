"""What a record says of itself, and the digest of its content.

The digest equals ``outbox/messages/content_digest.py`` bit for bit: Spark's ``xxhash64`` chains its
arguments with seed 42 and skips nulls, and an array of (name, value) is chained element by element.
A zero byte follows the name of a header whose value is null.
Headers are read by place (``outbox/messages/record.py``) and searched by name only where the
places do not fit.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from outbox.messages import record
from outbox.messages.message import Headers
from outbox.reconciliation.log import LogRecord
from spark.columns.expected_partition import expected_partition

LEADING: Final = (record.MESSAGE_ID, record.BATCH, record.DECIDED_BY)
UNCOVERED: Final = (*LEADING, record.REDRIVEN)
NO_SUCH: Final = sha256(b"the value of no header").hexdigest()
"""Where an array has it not, a search for it returns null if the array has a null."""
SHOWN_CHARACTERS: Final = 64
"""Of a message id or an order that is longer no more is kept."""
KEY_HASH: Final = "CASE WHEN key IS NOT NULL THEN xxhash64(key) END"


def described(log: DataFrame) -> DataFrame:
    """Return the records of the log: place, identity, digest; no key and no value.

    ``message_id`` is what the header says, empty if it has no value (``slot.with_half_id``).
    ``batch_no``, ``index`` and ``shard`` are null where the batch header has not three parts.
    """
    return (
        log.withColumn("home", expected_partition(F.col("key")))
        .selectExpr(
            *("topic", "partition", "offset", "timestamp AS published_at", "home"),
            f"""coalesce(
                left({_leading(record.MESSAGE_ID)}, {SHOWN_CHARACTERS}),
                CASE WHEN array_contains(headers.key, '{record.MESSAGE_ID}') THEN '' END
            ) AS message_id""",
            f"{_leading(record.BATCH)} AS batch",
            f"{_REDRIVEN} AS redriven",
            f"""CASE
                WHEN {_REDRIVEN}
                THEN left(string({_by_name(record.REDRIVEN)}), {SHOWN_CHARACTERS})
            END AS repair""",
            f"{_DIGEST} AS digest",
            f"{KEY_HASH} AS key_hash",
            f"""CASE
                WHEN get(headers, if({_FOURTH_IS_REDRIVEN}, 4, 3)).key = '{record.PRODUCER_GROUP}'
                THEN string(get(headers, if({_FOURTH_IS_REDRIVEN}, 4, 3)).value)
            END AS producer_group""",
        )
        .selectExpr("*", "substring_index(batch, '.', 2) AS two")
        .selectExpr("*", "try_cast(substring(batch, length(two) + 2) AS int) AS index")
        .selectExpr(
            "* EXCEPT (batch, two)",
            """CASE WHEN index IS NOT NULL
                THEN try_cast(substring_index(two, '.', 1) AS int)
            END AS shard""",
            """CASE WHEN index IS NOT NULL
                THEN try_cast(substring_index(two, '.', -1) AS bigint)
            END AS batch_no""",
        )
    )


def key_hash() -> Column:
    """Return the hash that stands for a key in reports; null for a record without a key."""
    return F.expr(KEY_HASH)


def covered_in(found: LogRecord) -> Headers:
    """Return the headers that the digest of the record covers."""
    names = tuple(name for name, _ in found.headers)
    if names[: len(LEADING)] == LEADING:
        return found.headers[len(LEADING) + (names[len(LEADING) :][:1] == (record.REDRIVEN,)) :]
    return tuple(header for header in found.headers if header[0] not in UNCOVERED)


def message_id_in(found: LogRecord) -> bytes | None:
    """Return the message id of the record, None without one."""
    return next((value for name, value in found.headers if name == record.MESSAGE_ID), None)


def _by_name(name: str) -> str:
    """Return the SQL for the value of the first header of a name; null without one."""
    return f"get(headers.value, int(array_position(headers.key, '{name}')) - 1)"


def _leading(name: str) -> str:
    """Return the SQL for the text of a leading header: by place, else the first of that name."""
    return f"""string(CASE
        WHEN {_IN_PLACE} THEN get(headers, {LEADING.index(name)}).value
        ELSE {_by_name(name)}
    END)"""


_IN_PLACE: Final = " AND ".join(
    f"get(headers, {place}).key <=> '{name}'" for place, name in enumerate(LEADING)
)
"""Whether the leading headers are at the places that the contract names."""

_FOURTH_IS_REDRIVEN: Final = f"get(headers, 3).key <=> '{record.REDRIVEN}'"

_REDRIVEN: Final = f"""CASE
    WHEN {_IN_PLACE} THEN {_FOURTH_IS_REDRIVEN}
    ELSE coalesce(array_contains(headers.key, '{record.REDRIVEN}'), false)
END"""
"""Whether a repair published the record."""

_COVERED: Final = f"""CASE
    WHEN {_IN_PLACE} THEN slice(headers, if({_FOURTH_IS_REDRIVEN}, 5, 4), size(headers))
    ELSE filter(headers, header -> header.key NOT IN {UNCOVERED})
END"""
"""The headers that the digest covers, in record order.

Spark does not compile a lambda, but only a record with headers out of order pays for it. Four
removals by place would make a method too long for the JVM's compiler and cost 9 µs per record."""

_DIGEST: Final = f"""xxhash64(
    {_leading(record.MESSAGE_ID)},
    topic,
    CASE
        WHEN key IS NULL AND value IS NULL THEN '--'
        WHEN key IS NULL THEN '-v'
        WHEN value IS NULL THEN 'k-'
        ELSE 'kv'
    END,
    key,
    value,
    CASE
        WHEN array_contains(({_COVERED}).value, X'{NO_SUCH}') IS NULL
        THEN transform({_COVERED}, header -> struct(
            CASE
                WHEN header.value IS NULL THEN concat(header.key, '\\0')
                ELSE header.key
            END AS key,
            header.value
        ))
        ELSE {_COVERED}
    END
)"""
"""The signed 64-bit digest of id, topic, presence flag, key, value and headers."""
