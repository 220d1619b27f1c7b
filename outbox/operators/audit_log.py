"""The audit log as operators read it: who intervened in what, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outbox.messages.message_id import HalfId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """A filter of the audit log, newest first; None means no condition.

    ``groups`` are the ids that the caller is bound to (None: all): such a caller sees the entries
    of its groups and of their messages. ``before`` continues below an entry.
    """

    groups: frozenset[int] | None = None
    action: str | None = None
    operator: str | None = None
    key_id: str | None = None
    half_id: HalfId | None = None
    producer_group: str | None = None
    topic: str | None = None
    transaction_id: str | None = None
    at_from: datetime | None = None
    at_to: datetime | None = None
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One intervention: who did what to which target, and why; ``message_id`` if it was one."""

    id: int
    at: datetime
    action: str
    target: str
    message_id: str | None
    key_id: str | None
    operator: str | None
    reason: str | None
    detail: Mapping[str, Any] | None
