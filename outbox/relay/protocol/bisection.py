"""Bisection: halves a refused batch until the refused record is alone in it."""

from __future__ import annotations

from outbox.messages.manifest import Manifest
from outbox.relay.protocol.state import WIDE, Narrowing


def narrow(batch: Manifest) -> Narrowing:
    """Return what to try after a refusal: the first half, or the only record again."""
    suspects = len(batch.entries)
    if len(batch.published) == 1:
        return Narrowing(suspects, suspects, batch.published[0])
    return Narrowing(suspects, max(1, suspects // 2))


def advance(narrowing: Narrowing, messages: int) -> Narrowing:
    """Return the remaining suspects after this number of messages was committed."""
    suspects = narrowing.suspects - messages
    return WIDE if suspects <= 0 else Narrowing(suspects, max(1, suspects // 2))
