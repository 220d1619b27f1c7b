"""Halves a batch: Kafka refuses a record without naming it, or the batch fails again and again.

The second happens if Kafka cannot take that number of records in time, for example below a quota.
"""

from __future__ import annotations

from msgspec.structs import replace

from outbox.messages.manifest import Kind, Manifest
from outbox.relay.protocol.state import WIDE, Narrowing, Relay


def narrow(batch: Manifest) -> Narrowing:
    """Return what to try next: the first half of the batch."""
    suspects = len(batch.entries)
    return Narrowing(suspects, max(1, suspects // 2))


def narrow_again(state: Relay) -> Relay:
    """Try half of the batch next if it has failed, though its records were sent for themselves."""
    batch = state.batch
    if batch is None or not batch.entries or not goes_apart(state):
        return state
    if batch.kind is Kind.BATCH:
        return replace(state, narrowing=narrow(batch))
    return replace(state, release_narrowing=narrow(batch))


def goes_apart(state: Relay) -> bool:
    """Return whether the manifest of a batch waits for its acknowledged records."""
    of_release = state.batch is not None and state.batch.kind is not Kind.BATCH
    return of_release or state.failures > 0 or state.narrowing != WIDE


def advance(narrowing: Narrowing, messages: int) -> Narrowing:
    """Return the remaining suspects after this number of messages was committed."""
    suspects = narrowing.suspects - messages
    return WIDE if suspects <= 0 else Narrowing(suspects, max(1, suspects // 2))
