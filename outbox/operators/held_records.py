"""An operator's view of records that Kafka refuses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from outbox.messages.message_id import HalfId, Nonce, message_id_text

COUNTED: Final = 1_000
"""The most messages that are counted behind one: a topic that is gone may hold millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMessage:
    """A committed message that Kafka refuses, or that waits behind a refused one."""

    half_id: HalfId
    nonce: Nonce
    topic: str
    key: bytes | None
    topic_wide: bool
    """Kafka refuses the whole topic, so the scope is the topic and not (topic, key)."""
    held_at: datetime
    publish_error: str
    attempts: int
    """The number of refusals of this record; 0 while it only waits."""
    next_attempt_at: datetime
    waiting_behind: int
    """The number of open messages of its scope after it; COUNTED: that many or more."""
    repair: str | None
    """The action that ordered to publish it again, if any."""
    dropped_at: datetime | None
    drop_reason: str | None

    @property
    def message_id(self) -> str:
        """The message's id as callers see it."""
        return message_id_text(self.half_id, self.nonce)
