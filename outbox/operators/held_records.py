"""An operator's view of records that Kafka refuses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

COUNTED: Final = 1_000
"""The most messages that are counted behind one: a topic that is gone may hold millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRecord:
    """A committed message that Kafka refuses, or that waits behind a refused one.

    ``topic_wide``: Kafka refuses the whole topic, otherwise only the key waits. ``attempts`` is 0
    while the record only waits; ``waiting_behind`` counts those that wait for it, up to 1 000. The
    bytes are those of key, value and headers, and the most that the topic takes.
    """

    message_id: str
    topic: str
    topic_wide: bool
    held_at: datetime
    publish_error: str
    content_bytes: int
    max_message_bytes: int | None
    attempts: int
    next_attempt_at: datetime
    waiting_behind: int
    dropped_at: datetime | None
    drop_reason: str | None
