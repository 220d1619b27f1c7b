"""The exits from a phase: a doubt drops the handle, a contradiction halts the shard.

A batch is halved if Kafka refuses a record without naming it, or if the batch fails again and
again: Kafka may not take that number of records in time, for example below a quota.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from outbox.messages.manifest import Kind, Manifest
from outbox.relay.protocol.actions import (
    Action,
    CloseSession,
    DropHandle,
    LeaveTransactionalId,
    Rest,
    SaveProgress,
    StoreHalt,
)
from outbox.relay.protocol.answers import Failed, StopAsked
from outbox.relay.protocol.state import Failure, HaltReason, Phase, Relay

Next = tuple[Relay, tuple[Action, ...]]
"""The next state and the plan that goes with it."""

BACKOFF_FIRST_SECONDS: Final = 0.1
BACKOFF_LAST_SECONDS: Final = 5.0
HALT_POLL_SECONDS: Final = 2.0
MOST_FAILURES: Final = 6
LEFT: Final = "transactional_id_left"
"""Why a producer is dropped whose transactional id is not used any more."""


def backoff_seconds(failures: int) -> float:
    """Return the wait after this number of failures in a row: 0.1 s, doubled up to 5 s."""
    return min(BACKOFF_LAST_SECONDS, BACKOFF_FIRST_SECONDS * 2.0 ** (failures - 1))


def unsaved(state: Relay) -> tuple[Action, ...]:
    """Return what stores the cursor, if the stored one is behind it."""
    return (SaveProgress(state.at),) if state.dirty else ()


def drop(state: Relay, reason: str) -> Next:
    """Drop a handle whose transaction is in doubt; REPLAY shows its result."""
    dropped = count_failure(replace(without_handle(state), phase=Phase.VERIFY))
    return dropped, (*unsaved(state), DropHandle(reason), Rest(backoff_seconds(dropped.failures)))


def on_failed(state: Relay, failed: Failed) -> Next:
    """Handle a failure: one of Kafka drops the handle, any other also closes the session.

    A transaction that took too long ends as if a newer producer had fenced this one. A row that is
    missing halts the shard: nothing tells the scope that would have to wait.
    """
    fencing = state.phase is Phase.FENCE
    if fencing and failed.failure is Failure.STUCK and state.owned is not None:
        return _leave_id(state, state.owned)
    if failed.failure is Failure.ROW_MISSING:
        halted, plan = halt(state, HaltReason.ROW_MISSING)
        return halted, (*unsaved(state), *plan)
    if failed.failure in (Failure.KAFKA, Failure.STUCK):
        phase = Phase.VERIFY
        closing: tuple[Action, ...] = (DropHandle(failed.failure),)
        state = narrow_again(state)
    else:
        phase = Phase.IDLE
        closing = (DropHandle(failed.failure), CloseSession())
        fenced = failed.failure is Failure.FENCED
        forgiven = replace(state, suspects=0, release_suspects=0)
        state = replace(narrow_again(state) if fenced else forgiven, owned=None)
    lost = count_failure(replace(without_handle(state), phase=phase))
    return lost, (*closing, Rest(backoff_seconds(lost.failures)))


def _leave_id(state: Relay, owned: int) -> Next:
    """Leave a transactional id whose transaction Kafka cannot end, for the next one."""
    left, plan = drop(replace(state, owned=None), LEFT)
    return left, (LeaveTransactionalId(owned), *plan)


def on_stop_asked(state: Relay, _: StopAsked) -> Next:
    """Store the progress and release the shard."""
    stopped = replace(without_handle(state), phase=Phase.IDLE)
    return stopped, (*unsaved(state), DropHandle("stopped"), CloseSession(), Rest(0.0))


def halt(state: Relay, reason: HaltReason) -> Next:
    """Halt the shard and store the reason; it keeps its lock and polls for a resolution."""
    halted = replace(without_handle(state), phase=Phase.HALT, halt=reason)
    return halted, (StoreHalt(reason), DropHandle("halted"), Rest(HALT_POLL_SECONDS))


def without_handle(state: Relay) -> Relay:
    """Keep only what is valid without a handle: REPLAY begins at the stored cursor again."""
    return replace(
        state,
        cursor=None,
        found=(),
        reached=False,
        waited=0.0,
        differs=False,
        batch=None,
        candidate=None,
        dirty=False,
        saved_at=None,
    )


def count_failure(state: Relay) -> Relay:
    """Count a failure in a row."""
    return replace(state, failures=min(state.failures + 1, MOST_FAILURES))


def narrow_again(state: Relay) -> Relay:
    """Try half of the batch next if it has failed, though its records were sent for themselves."""
    batch = state.batch
    if batch is None or not batch.entries or not goes_apart(state):
        return state
    return narrowed(state, batch)


def narrowed(state: Relay, batch: Manifest) -> Relay:
    """Try half of the batch next."""
    if batch.kind is Kind.BATCH:
        return replace(state, suspects=len(batch.entries))
    return replace(state, release_suspects=len(batch.entries))


def goes_apart(state: Relay) -> bool:
    """Return whether the manifest of a batch waits for its acknowledged records."""
    of_release = state.batch is not None and state.batch.kind is not Kind.BATCH
    return of_release or state.failures > 0 or state.suspects > 0


def most_of(suspects: int) -> int | None:
    """Return the limit of messages in the next batch; None: only the usual limit."""
    return max(1, suspects // 2) if suspects else None
