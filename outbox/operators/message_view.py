"""What readers of the API see of a message: the filter, the page, the whole, its history. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outbox.messages.message import DecidedBy, HalfMessage, MessageStatus, ParkedReason, State


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Which messages to list, newest first; None asks for nothing.

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
    """One message as it stands: the half, its decision, its checks, its parking.

    Without ``payload`` the half has lost its key, headers and value; ``value_bytes`` stays.
    """

    half: HalfMessage
    standing: MessageStatus
    value_bytes: int | None = None
    payload: bool = False
    next_check_at: datetime | None = None
    check_count: int = 0
    last_check: LastCheck | None = None
    parked_at: datetime | None = None
    parked_reason: ParkedReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """One page; ``next_before`` continues it, ``searched_back_to`` says how far a scan looked."""

    messages: tuple[MessageView, ...]
    next_before: int | None = None
    searched_back_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """One thing that happened to a message, with its facts."""

    at: datetime
    type: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """Who intervenes and why; goes into the audit log with the key that was used."""

    operator: str
    reason: str
    key_id: str | None
