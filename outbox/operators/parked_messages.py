"""Parked messages and their copies in the parked topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from outbox.messages.message import HalfMessage, ParkedReason
from outbox.messages.message_id import HalfId
from outbox.messages.record import Record


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


class ParkedMessages(Protocol):
    """Parked messages on their way to the parked topic. Methods raise DatabaseUnavailable."""

    async def uncopied(self, limit: int) -> Sequence[ParkedMessage]:
        """Return the oldest parked messages without a copy."""

    async def mark_copied(self, copied: Sequence[ParkedMessage]) -> None:
        """Mark messages as copied; a message that was parked again since then stays due."""


class ParkedTopic(Protocol):
    """The topic for parked messages; called from a thread."""

    def copy(self, records: Sequence[Record], at_ms: int) -> Sequence[str | None]:
        """Write records of this time; return for each None, or the error of a permanent refusal.

        Raises KafkaUnavailable when any record may be missing in the topic.
        """
