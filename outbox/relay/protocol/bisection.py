"""Finding the record that Kafka refuses: halve the batch until it stands alone."""

from __future__ import annotations

from outbox.messages.manifest import Manifest
from outbox.relay.protocol.state import WIDE, Narrowing


def narrowed(batch: Manifest) -> Narrowing:
    """Return what a refused batch leaves to try: its first half, or its one record once more."""
    suspects = len(batch.entries)
    if len(batch.published) == 1:
        return Narrowing(suspects, suspects, batch.published[0])
    return Narrowing(suspects, max(1, suspects // 2))


def passed(narrowing: Narrowing, messages: int) -> Narrowing:
    """Return what is left to suspect once so many messages have been committed."""
    suspects = narrowing.suspects - messages
    return WIDE if suspects <= 0 else Narrowing(suspects, max(1, suspects // 2))
