"""A parked message on its way to the parked topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from outbox.messages.message import HalfMessage, ParkedReason
from outbox.messages.message_id import HalfId


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedMessage:
    """A message that waits undecided, and why; ``half`` is None if its stored form is broken."""

    half_id: HalfId
    half: HalfMessage | None
    parked_at: datetime
    read_at: datetime
    """When it was read, by PostgreSQL's clock."""
    parked_reason: ParkedReason
    check_count: int
