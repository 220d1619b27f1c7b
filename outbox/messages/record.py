"""A half message as the Kafka record it will be: header names, their fixed order, its digest.

The order of the headers is part of the contract: the first ones name the message and the relay's
batch and are not covered by the content digest, all later ones are. Spark reads by place. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from outbox.messages.content_digest import content_digest
from outbox.messages.message import Content, DecidedBy, HalfMessage, Headers
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
"""Header names that ask for a delay, which is refused rather than dropped silently (P14)."""


class Record(NamedTuple):
    """What is handed to Kafka. ``partition`` None leaves the choice to murmur2 over the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: tuple[tuple[str, bytes], ...]


class Committed(NamedTuple):
    """A committed half message with all that its record needs; one of 2 000 in a relay's batch."""

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
    headers: Iterable[tuple[str, str]]


def covered_headers(content: Content, producer_group: str, transaction_id: str | None) -> Headers:
    """Return the headers that the content digest covers, in record order."""
    return tuple(
        _covered(
            producer_group,
            transaction_id,
            content.content_type,
            content.traceparent,
            content.headers,
        )
    )


def digest_of(
    half_id: HalfId,
    nonce: Nonce,
    content: Content,
    producer_group: str,
    transaction_id: str | None,
) -> int:
    """Return the content digest of the record that this half message would become."""
    return content_digest(
        message_id_text(half_id, nonce),
        content.topic,
        content.key,
        content.value,
        covered_headers(content, producer_group, transaction_id),
    )


def render(
    half: HalfMessage, decided_by: DecidedBy, batch: str, redriven: str | None = None
) -> Record:
    """Render the record of a committed half message.

    ``batch`` is ``<shard>.<batch number>.<index>``, the relay batch that publishes it.
    """
    message, content = half.message, half.message.content
    committed = Committed(
        half_id=half.half_id,
        nonce=half.nonce,
        decided_by=decided_by.value,
        producer_group=message.producer_group,
        transaction_id=message.transaction_id,
        topic=content.topic,
        key=content.key,
        value=content.value,
        partition=content.partition,
        content_type=content.content_type,
        traceparent=content.traceparent,
        headers=content.headers,
    )
    return record_of(committed, batch, redriven)


def record_of(committed: Committed, batch: str | None, redriven: str | None = None) -> Record:
    """Render a record from what the relay has read; see ``render``.

    ``batch`` None: it is in no batch that a manifest lists (lane at_least_once).
    """
    (half_id, nonce, decided_by, group, transaction_id, topic, key, value, partition, *_) = (
        committed
    )
    headers = [(MESSAGE_ID, message_id_text(half_id, nonce).encode())]
    if batch is not None:
        headers.append((BATCH, batch.encode()))
    headers.append((DECIDED_BY, decided_by.encode()))
    if redriven is not None:
        headers.append((REDRIVEN, redriven.encode()))
    for name, text in _covered(
        group, transaction_id, committed.content_type, committed.traceparent, committed.headers
    ):
        headers.append((name, text.encode()))
    return Record(topic, key, value, partition, tuple(headers))


def is_reserved(name: str) -> bool:
    """Tell whether a caller may not use this header name (any case)."""
    lowered = name.lower()
    return lowered in RESERVED_NAMES or lowered.startswith(RESERVED_PREFIXES)


def asks_for_delay(name: str) -> bool:
    """Tell whether a header name asks for delayed delivery (P14)."""
    lowered = name.lower()
    return lowered in DELAY_NAMES or lowered.startswith(DELAY_PREFIX)


def _covered(
    producer_group: str,
    transaction_id: str | None,
    content_type: str | None,
    traceparent: str | None,
    callers: Iterable[tuple[str, str]],
) -> list[tuple[str, str]]:
    covered = [(PRODUCER_GROUP, producer_group)]
    if transaction_id is not None:
        covered.append((TRANSACTION_ID, transaction_id))
    if content_type is not None:
        covered.append((CONTENT_TYPE, content_type))
    if traceparent is not None:
        covered.append((TRACEPARENT, traceparent))
    covered.extend(callers)
    return covered
