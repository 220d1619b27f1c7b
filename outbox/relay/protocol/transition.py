"""How a shard leaves what it was doing: doubt drops the handle, contradiction halts the shard."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from outbox.relay.protocol.actions import (
    Action,
    CloseSession,
    DropHandle,
    Rest,
    SaveProgress,
    StoreHalt,
)
from outbox.relay.protocol.answers import Failed, StopAsked
from outbox.relay.protocol.state import WIDE, Failure, HaltReason, Phase, Relay

Next = tuple[Relay, tuple[Action, ...]]
"""The next state and the plan that goes with it."""

BACKOFF_FIRST_SECONDS: Final = 0.1
BACKOFF_LAST_SECONDS: Final = 5.0
HALT_POLL_SECONDS: Final = 2.0
MOST_FAILURES: Final = 6


def backoff_seconds(failures: int) -> float:
    """Return how long to wait after so many failures in a row: 0.1 s doubling up to 5 s."""
    return min(BACKOFF_LAST_SECONDS, BACKOFF_FIRST_SECONDS * 2.0 ** (failures - 1))


def drop(state: Relay, reason: str) -> Next:
    """Forget a handle whose transaction is in doubt; REPLAY will tell what became of it."""
    saving = (SaveProgress(state.at, state.who),) if state.dirty else ()
    dropped = failed_once(replace(forgetful(state), phase=Phase.VERIFY))
    return dropped, (*saving, DropHandle(reason), Rest(backoff_seconds(dropped.failures)))


def on_failed(state: Relay, failed: Failed) -> Next:
    """Answer a failure: Kafka's costs the handle, any other the session as well."""
    if failed.failure is Failure.KAFKA:
        phase = Phase.VERIFY
        closing: tuple[Action, ...] = (DropHandle(failed.failure),)
    else:
        phase = Phase.IDLE
        closing = (DropHandle(failed.failure), CloseSession())
        state = replace(state, narrowing=WIDE, release_narrowing=WIDE)
    lost = failed_once(replace(forgetful(state), phase=phase))
    return lost, (*closing, Rest(backoff_seconds(lost.failures)))


def on_stop_asked(state: Relay, _: StopAsked) -> Next:
    """Store what is known and let the shard go."""
    saving = (SaveProgress(state.at, state.who),) if state.dirty else ()
    stopped = replace(forgetful(state), phase=Phase.IDLE)
    return stopped, (*saving, DropHandle("stopped"), CloseSession(), Rest(0.0))


def halt(state: Relay, reason: HaltReason) -> Next:
    """Stop the shard and say why; it keeps its lock and looks for the operator's decision."""
    halted = replace(forgetful(state), phase=Phase.HALT, halt=reason)
    return halted, (StoreHalt(reason), DropHandle("halted"), Rest(HALT_POLL_SECONDS))


def forgetful(state: Relay) -> Relay:
    """Keep only what stays true without a handle: REPLAY begins at the stored cursor again."""
    return replace(
        state,
        cursor=None,
        found=(),
        reached=False,
        differs=False,
        batch=None,
        candidate=None,
        dirty=False,
        saved_at=None,
    )


def failed_once(state: Relay) -> Relay:
    """Count a failure in a row."""
    return replace(state, failures=min(state.failures + 1, MOST_FAILURES))
