"""IDLE and VERIFY: takes a shard's lock, and checks that both stores are the known ones."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from outbox.messages.message_id import SHARDS
from outbox.relay.protocol.actions import Fence, IdentifyStores, Rest
from outbox.relay.protocol.answers import LockBusy, LockTaken, StoresIdentified
from outbox.relay.protocol.state import HaltReason, Phase, Relay
from outbox.relay.protocol.transition import HALT_POLL_SECONDS, Next, halt

LOCK_RETRY_SECONDS: Final = 0.5
"""The poll interval of a standby; it replaces a killed owner well within 3 s."""


def on_lock_busy(state: Relay, _: LockBusy) -> Next:
    """Wait for the owner; PostgreSQL ends the session of a frozen one."""
    return state, (Rest(LOCK_RETRY_SECONDS),)


def on_lock_taken(state: Relay, _: LockTaken) -> Next:
    """Identify both stores before any change to one."""
    return replace(state, phase=Phase.VERIFY), (IdentifyStores(),)


def on_stores_identified(state: Relay, stores: StoresIdentified) -> Next:
    """Fence only if no unresolved halt is stored and both stores are the known ones."""
    stored = stores.progress.halt if stores.progress else None
    if stored is not None and stored is not HaltReason.REPLAY_STUCK:
        return replace(state, phase=Phase.HALT, halt=stored), (Rest(HALT_POLL_SECONDS),)
    difference = _difference(stores)
    if difference is not None:
        return halt(state, difference)
    verified = replace(
        state,
        phase=Phase.FENCE,
        halt=None,
        installation=stores.installation,
        identity=stores.identity,
    )
    return verified, (Fence(),)


def _difference(stores: StoresIdentified) -> HaltReason | None:
    """Return the store that differs from the known one, before any fence."""
    now, before = stores.identity, stores.progress and stores.progress.identity
    if stores.partitions < SHARDS:
        return HaltReason.TOPIC_CHANGED
    if before is None or before == now:
        return None
    if before.cluster_id != now.cluster_id:
        return HaltReason.CLUSTER_CHANGED
    if before.topic_id != now.topic_id:
        return HaltReason.TOPIC_CHANGED
    return HaltReason.DATABASE_CHANGED
