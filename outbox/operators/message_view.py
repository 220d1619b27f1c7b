"""The API's views of messages: filter, page, one message, its history. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from outbox.messages.message import DecidedBy, HalfMessage, MessageStatus, ParkedReason, State

NEVER_CHECKED: Final = "none"
"""Stands for the outcome of the last check where no check was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """A filter of messages, newest first; None means no condition.

    ``groups`` are the ids the caller is bound to (None: all); ``before`` continues below a half id.
    """

    groups: frozenset[int] | None = None
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
class LastCheck:
    """The latest check of a message; ``latency_ms`` counts milliseconds."""

    at: datetime
    outcome: str
    http_status: int | None
    latency_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """The current state of one message: the half, its decision, its checks, its parking.

    Without ``payload`` the half has no key, headers and value; ``value_bytes`` is always set.
    """

    half: HalfMessage
    status: MessageStatus
    value_bytes: int | None = None
    payload: bool = False
    headers_damaged: bool = False
    """The stored headers cannot be read, and the half has none."""
    next_check_at: datetime | None = None
    check_count: int = 0
    last_check: LastCheck | None = None
    parked_at: datetime | None = None
    parked_reason: ParkedReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """One page; ``next_before`` continues it, ``searched_back_to`` is the end of a scan."""

    messages: tuple[MessageView, ...]
    next_before: int | None = None
    searched_back_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCheck(LastCheck):
    """A check of one message of a group; ``applied``: it decided the message."""

    message_id: str
    attempt: int
    counted: bool
    applied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChecks:
    """The newest checks first; messages prepared before ``searched_back_to`` were not looked at."""

    data: tuple[GroupCheck, ...]
    searched_back_to: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """One event of a message, with its facts."""

    at: datetime
    type: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """Who intervenes and why; the audit log stores it with the API key."""

    operator: str
    reason: str
    key_id: str | None
