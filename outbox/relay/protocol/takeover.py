"""IDLE and VERIFY: owning a shard, and making sure that both stores are the ones it knew."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from outbox.relay.protocol.actions import Fence, IdentifyStores, Rest, TerminateHolder
from outbox.relay.protocol.answers import LockBusy, LockTaken, StoresIdentified
from outbox.relay.protocol.state import SHARDS, HaltReason, Phase, Relay, Watch
from outbox.relay.protocol.transition import HALT_POLL_SECONDS, Next, halt

LOCK_RETRY_SECONDS: Final = 0.5
"""A standby asks this often, so a killed owner is followed well within 3 s."""
STALL_SECONDS: Final = 30.0
"""An owner with work that does not move for so long is taken for frozen."""


def on_lock_busy(state: Relay, busy: LockBusy) -> Next:
    """Wait for the owner; end its session once it has had work and not moved for 30 s."""
    watch = state.watch
    if watch is None or not busy.waiting or watch.position != busy.position:
        return replace(state, watch=Watch(busy.position, busy.at)), (Rest(LOCK_RETRY_SECONDS),)
    if busy.at - watch.since < STALL_SECONDS:
        return state, (Rest(LOCK_RETRY_SECONDS),)
    return replace(state, watch=None), (TerminateHolder(), Rest(LOCK_RETRY_SECONDS))


def on_lock_taken(state: Relay, _: LockTaken) -> Next:
    """Look at both stores before touching either."""
    return replace(state, phase=Phase.VERIFY, watch=None), (IdentifyStores(),)


def on_standing(state: Relay, standing: StoresIdentified) -> Next:
    """Fence only where a stored halt has been resolved and everything is as it was."""
    stored = standing.progress.halt if standing.progress else None
    if stored is not None and stored is not HaltReason.REPLAY_STUCK:
        return replace(state, phase=Phase.HALT, halt=stored), (Rest(HALT_POLL_SECONDS),)
    difference = _difference(standing)
    if difference is not None:
        return halt(state, difference)
    verified = replace(
        state,
        phase=Phase.FENCE,
        halt=None,
        installation=standing.installation,
        identity=standing.identity,
    )
    return verified, (Fence(),)


def _difference(standing: StoresIdentified) -> HaltReason | None:
    """Name what is not as it was, before anyone is fenced."""
    now, before = standing.identity, standing.progress and standing.progress.identity
    if standing.partitions != SHARDS:
        return HaltReason.TOPIC_CHANGED
    if before is None or before == now:
        return None
    if before.cluster_id != now.cluster_id:
        return HaltReason.CLUSTER_CHANGED
    if before.topic_id != now.topic_id:
        return HaltReason.TOPIC_CHANGED
    return HaltReason.DATABASE_CHANGED
