"""The size of a record as a broker counts it: the batch that holds this record alone.

Kafka's record batch format v2: 61 bytes before the first record. Each length in a record is a
varint (zigzag), and its first three members (attributes, the difference of the time and of the
offset) have a byte each. Pure.
"""

from __future__ import annotations

from typing import Final

from outbox.messages.message import Message
from outbox.messages.record import BATCH, DECIDED_BY, MESSAGE_ID, covered_headers

LONGEST_BATCH: Final = "15.999999999999.1999"
"""A place in a relay's batch; a thousand batches a second need 31 years to reach it."""
LATER_HEADERS: Final = (
    *(MESSAGE_ID, "-" * 36),
    *(BATCH, LONGEST_BATCH),
    *(DECIDED_BY, "producer"),
)
"""The headers that are known only when a record is published, with their longest values."""
BATCH_FRAME: Final = 61
FIRST_MEMBERS: Final = 3
REST_MAX_BYTES: Final = 40_000
"""More than a batch with one record has beside key and value: headers are limited."""


def batch_bytes(message: Message) -> int:
    """Return the most bytes of a batch, not compressed, with the record of this message alone."""
    covered = covered_headers(message)
    texts = [*LATER_HEADERS, *(name for name, _ in covered)]
    values = [value for _, value in covered]
    fields = [message.key, message.value, *values, *(text.encode() for text in texts)]
    headers = _varint_bytes(len(LATER_HEADERS) // 2 + len(covered))
    record = FIRST_MEMBERS + headers + sum(map(_field_bytes, fields))
    return BATCH_FRAME + _varint_bytes(record) + record


def _field_bytes(field: bytes | None) -> int:
    """Return the bytes of a field with its length; the length of none is -1, in one byte."""
    return 1 if field is None else _varint_bytes(len(field)) + len(field)


def _varint_bytes(number: int) -> int:
    """Return the bytes of a number: a byte has seven bits, and the first of all is the sign."""
    return number.bit_length() // 7 + 1
