"""Bisection: halves a refused batch if Kafka does not name the record that it refuses."""

from __future__ import annotations

from outbox.messages.manifest import Manifest
from outbox.relay.protocol.state import WIDE, Narrowing


def narrow(batch: Manifest) -> Narrowing:
    """Return what to try after a refusal: the first half of the batch."""
    suspects = len(batch.entries)
    return Narrowing(suspects, max(1, suspects // 2))


def advance(narrowing: Narrowing, messages: int) -> Narrowing:
    """Return the remaining suspects after this number of messages was committed."""
    suspects = narrowing.suspects - messages
    return WIDE if suspects <= 0 else Narrowing(suspects, max(1, suspects // 2))
