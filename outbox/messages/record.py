"""The Kafka record of a half message: header names, their fixed order, the content digest.

The order of the headers is part of the contract. The first headers name the message and the relay's
batch; the content digest does not cover them. It covers all later headers. Spark reads headers by
position. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from outbox.messages.content_digest import content_digest
from outbox.messages.message import Headers, Message
from outbox.messages.message_id import HalfId, Nonce, message_id_text

MESSAGE_ID: Final = "outbox_message_id"
BATCH: Final = "outbox_batch"
DECIDED_BY: Final = "outbox_decided_by"
REDRIVEN: Final = "outbox_redriven"
PRODUCER_GROUP: Final = "outbox_producer_group"
TRANSACTION_ID: Final = "outbox_transaction_id"
CONTENT_TYPE: Final = "content-type"
TRACEPARENT: Final = "traceparent"

RESERVED_PREFIXES: Final = ("outbox_", "webhook-")
RESERVED_NAMES: Final = frozenset({CONTENT_TYPE, TRACEPARENT, "tracestate"})
DELAY_NAMES: Final = ("delay",)
DELAY_PREFIX: Final = "timer_"
"""Header names that ask for a delay: they are refused, not silently dropped (P14)."""


class Record(NamedTuple):
    """A record for Kafka. ``partition`` None: murmur2 over the key selects it."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: Headers


class Committed(NamedTuple):
    """A committed half message with all fields of its record; a relay's batch has up to 2 000.

    ``content_digest`` is the stored one, of what was prepared.
    """

    half_id: HalfId
    nonce: Nonce
    decided_by: str
    producer_group: str
    transaction_id: str | None
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    content_type: str | None
    traceparent: str | None
    headers: Headers
    content_digest: int


class UnnamedRecord(NamedTuple):
    """A record that recovery found listed in a manifest, or ``resolve --scan`` in its topic."""

    half_id: HalfId
    nonce: Nonce
    shard: int
    manifest_offset: int


class RecordName(NamedTuple):
    """The producer and transaction of a record, from its headers."""

    half_id: HalfId
    nonce: Nonce
    producer_group: str
    transaction_id: str | None


def covered_headers(message: Message | Committed) -> Headers:
    """Return the headers that the content digest covers, in record order."""
    covered = [(PRODUCER_GROUP, message.producer_group)]
    if message.transaction_id is not None:
        covered.append((TRANSACTION_ID, message.transaction_id))
    if message.content_type is not None:
        covered.append((CONTENT_TYPE, message.content_type))
    if message.traceparent is not None:
        covered.append((TRACEPARENT, message.traceparent))
    return (*((name, text.encode()) for name, text in covered), *message.headers)


def digest_of(half_id: HalfId, nonce: Nonce, message: Message) -> int:
    """Return the content digest of this half message's record."""
    return content_digest(
        message_id_text(half_id, nonce).encode(),
        message.topic,
        message.key,
        message.value,
        covered_headers(message),
    )


def record_of(committed: Committed, batch: str, redriven: str | None = None) -> Record:
    """Return the Kafka record of a committed message.

    ``batch`` is ``<shard>.<batch number>.<index>``: its place in the relay batch that publishes it.
    """
    headers: list[tuple[str, bytes | None]] = [
        (MESSAGE_ID, message_id_text(committed.half_id, committed.nonce).encode()),
        (BATCH, batch.encode()),
        (DECIDED_BY, committed.decided_by.encode()),
    ]
    if redriven is not None:
        headers.append((REDRIVEN, redriven.encode()))
    headers += covered_headers(committed)
    return Record(
        committed.topic, committed.key, committed.value, committed.partition, tuple(headers)
    )


def digest_in(record: Record) -> int:
    """Return the content digest of a rendered record."""
    (_, message_id), _, _, *covered = record.headers
    if covered[0][0] == REDRIVEN:
        del covered[0]
    return content_digest(message_id, record.topic, record.key, record.value, covered)


def is_reserved(name: str) -> bool:
    """Return whether this header name is reserved, in upper or lower case."""
    lowered = name.lower()
    return lowered in RESERVED_NAMES or lowered.startswith(RESERVED_PREFIXES)


def asks_for_delay(name: str) -> bool:
    """Return whether a header name asks for delayed delivery (P14)."""
    lowered = name.lower()
    return lowered in DELAY_NAMES or lowered.startswith(DELAY_PREFIX)
