"""A half message as the Kafka record it will be: header names, their fixed order, its digest.

The order of the headers is part of the contract: the first ones name the message and the relay's
batch and are not covered by the content digest, all later ones are. Spark reads by place. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from outbox.content_digest import content_digest
from outbox.message import Content, DecidedBy, HalfMessage, Headers
from outbox.message_id import HalfId, Nonce, message_id_text

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is handed to Kafka. ``partition`` None leaves the choice to murmur2 over the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: tuple[tuple[str, bytes], ...]


def covered_headers(content: Content, producer_group: str, transaction_id: str | None) -> Headers:
    """Return the headers that the content digest covers, in record order."""
    optional = (
        (TRANSACTION_ID, transaction_id),
        (CONTENT_TYPE, content.content_type),
        (TRACEPARENT, content.traceparent),
    )
    present = tuple((name, text) for name, text in optional if text is not None)
    return ((PRODUCER_GROUP, producer_group), *present, *content.headers)


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
    leading: list[tuple[str, str]] = [
        (MESSAGE_ID, message_id_text(half.half_id, half.nonce)),
        (BATCH, batch),
        (DECIDED_BY, decided_by.value),
    ]
    if redriven is not None:
        leading.append((REDRIVEN, redriven))
    covered = covered_headers(content, message.producer_group, message.transaction_id)
    return Record(
        topic=content.topic,
        key=content.key,
        value=content.value,
        partition=content.partition,
        headers=tuple((name, text.encode()) for name, text in (*leading, *covered)),
    )


def is_reserved(name: str) -> bool:
    """Tell whether a caller may not use this header name (any case)."""
    lowered = name.lower()
    return lowered in RESERVED_NAMES or lowered.startswith(RESERVED_PREFIXES)


def asks_for_delay(name: str) -> bool:
    """Tell whether a header name asks for delayed delivery (P14)."""
    lowered = name.lower()
    return lowered in DELAY_NAMES or lowered.startswith(DELAY_PREFIX)
