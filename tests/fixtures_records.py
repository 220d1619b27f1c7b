"""Builds the Kafka record of a stored half message."""

from __future__ import annotations

from outbox.messages.message import DecidedBy, HalfMessage
from outbox.messages.record import Committed, Record, record_of


def render(
    half: HalfMessage, decided_by: DecidedBy, batch: str, redriven: str | None = None
) -> Record:
    """Return the record of a half message as if it were committed; see ``record_of``."""
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
