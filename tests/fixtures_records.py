"""Builds the Kafka record of a stored half message."""

from __future__ import annotations

from outbox.messages.message import DecidedBy, HalfMessage
from outbox.messages.record import Committed, Record, record_of


def render(
    half: HalfMessage, decided_by: DecidedBy, batch: str, redriven: str | None = None
) -> Record:
    """Return the record of a half message as if it were committed; see ``record_of``."""
    message = half.message
    committed = Committed(
        half_id=half.half_id,
        nonce=half.nonce,
        decided_by=decided_by.value,
        producer_group=message.producer_group,
        transaction_id=message.transaction_id,
        topic=message.topic,
        key=message.key,
        value=message.value,
        partition=message.partition,
        content_type=message.content_type,
        traceparent=message.traceparent,
        headers=message.headers,
        content_digest=half.content_digest,
    )
    return record_of(committed, batch, redriven)


def header_in(record: Record, name: str) -> str:
    """Return the text of a header; fails unless the record has it."""
    value = dict(record.headers)[name]
    assert value is not None
    return value.decode()
