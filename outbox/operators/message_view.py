"""Messages as REST shows them, and the filter and the page of a list. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, WithJsonSchema

from outbox.messages.message import DecidedBy, Resolution, State

Noun = TypeVar("Noun")

HeaderValue = Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/HeaderValue"})]
"""What ``header_value`` returns."""
NEVER_CHECKED: Final = "none"
"""Stands for the outcome of the last check where no check was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """A filter of messages, newest first; None means no condition.

    ``groups`` are the ids the caller is bound to (None: all); ``before`` continues below a half id.
    """

    groups: Sequence[int] | None = None
    state: State | None = None
    producer_group: str | None = None
    topic: str | None = None
    transaction_id: str | None = None
    key: bytes | None = None
    tag: str | None = None
    decided_by: DecidedBy | None = None
    prepared_from: datetime | None = None
    prepared_to: datetime | None = None
    min_checks: int | None = None
    last_outcome: str | None = None
    last_http_status: int | None = None
    trace_id: str | None = None
    """That of the prepare, 32 hexadecimal digits."""
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Generic[Noun]):
    """One page; ``next_before`` continues it, ``searched_back_to`` is the end of a scan."""

    data: Sequence[Noun]
    next_before: int | None = None
    searched_back_to: datetime | None = None


class LastCheck(BaseModel):
    """The latest check of a message; ``latency_ms`` counts milliseconds."""

    at: datetime
    outcome: str
    http_status: int | None
    latency_ms: int


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
    message_ids: list[str] | None
    """All messages of its decision if there are several, first the one that is ended."""
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
    headers: dict[str, HeaderValue] | None = None
    """None: the stored ones cannot be read."""
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None


class GroupCheck(LastCheck):
    """A check of one message of a group; ``applied``: it decided the message."""

    message_id: str
    attempt: int
    counted: bool
    applied: bool


class GroupChecks(BaseModel):
    """The newest checks first; messages prepared before ``searched_back_to`` were not looked at."""

    data: list[GroupCheck]
    searched_back_to: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """Who intervenes and why, if that is asked; the audit log stores it with the API key."""

    operator: str | None
    reason: str | None
    key_id: str | None


def text_or_base64(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes as a member of a resource: as text if they are UTF-8, else in base64."""
    shown = header_value(data)
    return {f"{name}_base64": shown["base64"]} if isinstance(shown, dict) else {name: shown}


def header_values(headers: Iterable[tuple[str, bytes | None]]) -> dict[str, Any]:
    """Return headers as a member of a resource."""
    return {name: header_value(value) for name, value in headers}


def header_value(data: bytes | None) -> str | dict[str, str] | None:
    """Return a header's value as JSON has it: a text if it is UTF-8, else an object with base64."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
