"""A half message as a row: how it is written by COPY and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from outbox.messages.message import Content, HalfMessage, Headers, Message
from outbox.messages.message_id import HalfId, Nonce

COPY_TYPES: Final = (
    "int8",
    "int8",
    "timestamptz",
    "int8",
    "int4",
    "int4",
    "int4",
    "int4",
    "text",
    "bytea",
    "bytea",
    "text[]",
    "text",
    "text",
    "text[]",
    "text",
)


def copy_row(half: HalfMessage) -> tuple[object, ...]:
    """Return the row that COPY appends, in the order of its column list."""
    message, content = half.message, half.message.content
    return (
        half.half_id,
        half.nonce,
        half.prepared_at,
        half.content_digest,
        message.producer_group_id,
        message.topic_id,
        content.partition,
        message.check_immunity_seconds,
        message.transaction_id,
        content.key,
        content.value,
        [text for header in content.headers for text in header] or None,
        content.content_type,
        content.traceparent,
        list(message.tags) or None,
        message.key_id,
    )


def read_half(row: Mapping[str, Any]) -> HalfMessage:
    """Build the half message of a row that names its group and topic."""
    content = Content(
        topic=row["topic"],
        value=row["value"],
        key=row["key"],
        partition=row["partition"],
        headers=read_headers(row["headers"]),
        content_type=row["content_type"],
        traceparent=row["traceparent"],
    )
    message = Message(
        content=content,
        producer_group=row["producer_group"],
        producer_group_id=row["producer_group_id"],
        topic_id=row["topic_id"],
        transaction_id=row["transaction_id"],
        check_immunity_seconds=row["check_immunity_seconds"],
        tags=tuple(row["tags"] or ()),
        key_id=row["key_id"],
    )
    return HalfMessage(
        half_id=HalfId(row["half_id"]),
        nonce=Nonce(row["nonce"]),
        message=message,
        prepared_at=row["prepared_at"],
        content_digest=row["content_digest"],
    )


def read_headers(names_and_values: list[str] | None) -> Headers:
    """Pair up the alternating names and values of the ``headers`` column."""
    flat = names_and_values or []
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def same_request(stored: Message, asked: Message) -> bool:
    """Return whether a repeated prepare has equal fields, byte by byte; headers in any order."""
    return _fields(stored) == _fields(asked)


def _fields(message: Message) -> tuple[object, ...]:
    content = message.content
    return (
        content.topic,
        content.partition,
        content.key,
        content.value,
        dict(content.headers),
        content.content_type,
        message.tags,
        message.check_immunity_seconds,
    )


def bounds(half_ids: Sequence[HalfId]) -> dict[str, int]:
    """Return the parameters ``low`` and ``high`` that let PostgreSQL prune partitions."""
    return {"low": min(half_ids, default=0), "high": max(half_ids, default=0)}
