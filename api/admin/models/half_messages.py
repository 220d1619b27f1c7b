"""The wire models of half messages and their history, made from the library's values."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.admin.models.base import OperatorRequest
from api.admin.models.page import Page
from api.http.wire_types import NO_NUL, Count, HttpStatus, Moment
from api.ingest.schemas import GROUP_PATTERN
from outbox.checks.answer import Outcome
from outbox.messages.message import DecidedBy, Resolution, State
from outbox.operators.message_view import HistoryEvent, LastCheck, MessageView

PAYLOAD: Final = frozenset({"headers", "key", "key_base64", "value", "value_base64"})


class ForceEndRequest(OperatorRequest):
    """An operator's decision."""

    decision: Literal["COMMIT", "ROLLBACK"]


class MessageConditions(BaseModel):
    """The filters of a list or of a bulk action; a message must match all of them."""

    model_config = ConfigDict(extra="forbid")

    state: State | None = None
    producer_group: str | None = Field(None, pattern=GROUP_PATTERN.replace(r"(?![\s\S])", r"$"))
    topic: str | None = Field(None, min_length=1, max_length=249, pattern=NO_NUL)
    transaction_id: str | None = Field(None, min_length=1, max_length=128, pattern=NO_NUL)
    key: str | None = Field(None, max_length=8192)
    tag: str | None = Field(None, min_length=1, max_length=64, pattern=NO_NUL)
    decided_by: DecidedBy | None = None
    prepared_from: Moment | None = None
    prepared_to: Moment | None = None
    min_checks: Count | None = None
    last_outcome: Outcome | Literal["none"] | None = None
    """``none``: no check was made."""
    last_http_status: HttpStatus | None = None
    trace_id: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")


class MessageQuery(MessageConditions):
    """The filters of a list, and its page."""

    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, max_length=256)


class PublicationResource(BaseModel):
    """The place of the record in Kafka."""

    model_config = ConfigDict(from_attributes=True)

    topic: str
    partition: int
    offset: int
    published_at: datetime


class MessageResource(BaseModel):
    """The current state of a message; payload members only with ``include=payload``."""

    message_id: str
    producer_group: str
    transaction_id: str | None
    topic: str
    partition: int | None
    state: State
    decision: Resolution | None
    decided_by: DecidedBy | None
    decided_at: datetime | None
    reason: str | None
    prepared_at: datetime
    next_check_at: datetime | None
    check_count: int
    last_check: LastCheck | None
    parked_at: datetime | None
    parked_reason: str | None
    content_type: str | None
    tags: list[str]
    value_bytes: int | None
    publication: PublicationResource | None
    publish_error: str | None
    headers: dict[str, str] | None = None
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None


class RecordResource(BaseModel):
    """A record in Kafka, and the message that it is."""

    message_id: str
    topic: str
    partition: int
    offset: int


class MessagePageResource(Page[MessageResource]):
    """One page of messages, newest first; ``searched_back_to`` is where a filter's scan stopped."""

    searched_back_to: datetime | None = None


class HistoryEventResource(BaseModel):
    """One event; further members depend on its type."""

    model_config = ConfigDict(extra="allow")

    seq: int
    at: datetime
    type: str


class HistoryResource(BaseModel):
    """The events of a message, in order."""

    message_id: str
    events: list[HistoryEventResource]


class Rechecked(BaseModel):
    """A message whose check is due now."""

    message_id: str
    state: State
    next_check_at: datetime


def message_resource(view: MessageView) -> MessageResource:
    """Return a message as callers see it."""
    half, message, status = view.half, view.half.message, view.status
    op = status.op
    return MessageResource(
        message_id=str(half.message_id),
        producer_group=message.producer_group,
        transaction_id=message.transaction_id,
        topic=message.topic,
        partition=message.partition,
        state=status.state,
        decision=op.decision if op else None,
        decided_by=op.decided_by if op else None,
        decided_at=op.decided_at if op else None,
        reason=op.reason if op else None,
        prepared_at=half.prepared_at,
        next_check_at=view.next_check_at,
        check_count=view.check_count,
        last_check=view.last_check,
        parked_at=view.parked_at,
        parked_reason=view.parked_reason,
        content_type=message.content_type,
        tags=list(message.tags),
        value_bytes=view.value_bytes,
        publication=status.publication,  # type: ignore[arg-type]  # read by its attributes
        publish_error=status.publish_error,
        **(_payload(view) if view.payload else {}),
    )


def message_json(view: MessageView) -> bytes:
    """Return the resource as JSON, with payload members only if they were requested."""
    resource = message_resource(view)
    hidden = PAYLOAD - resource.model_fields_set
    return resource.model_dump_json(exclude=set(hidden)).encode()


def history_resource(message_id: str, events: Sequence[HistoryEvent]) -> HistoryResource:
    """Return a history with numbered events."""
    numbered = [
        HistoryEventResource(seq=seq, at=event.at, type=event.type, **event.facts)
        for seq, event in enumerate(events, 1)
    ]
    return HistoryResource(message_id=message_id, events=numbered)


def _payload(view: MessageView) -> dict[str, Any]:
    message = view.half.message
    return {
        "headers": None if view.headers_damaged else dict(message.headers),
        **_text_or_base64("key", message.key),
        **_text_or_base64("value", message.value),
    }


def _text_or_base64(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes as text if they are UTF-8, else in base64."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
