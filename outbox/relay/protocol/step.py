"""One step of the protocol: maps each answer to its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from outbox.relay.protocol.actions import IdentifyStores, ReadCommits, TryLock
from outbox.relay.protocol.answers import (
    Answer,
    Bounds,
    CommitEnded,
    Commits,
    Compared,
    DeliveryReport,
    Failed,
    Fenced,
    LockBusy,
    LockTaken,
    ManifestsRead,
    Rested,
    StopAsked,
    Stored,
    StoresIdentified,
)
from outbox.relay.protocol.publication import (
    on_commit_ended,
    on_commits_read,
    on_delivered,
)
from outbox.relay.protocol.state import Phase, Relay
from outbox.relay.protocol.takeover import (
    fence,
    on_bounds,
    on_compared,
    on_fenced,
    on_lock_busy,
    on_lock_taken,
    on_manifests_read,
    on_stored,
    on_stores_identified,
    read_on,
)
from outbox.relay.protocol.transition import Next, most_of, on_failed, on_stop_asked


def step(state: Relay, answer: Answer) -> Next:
    """Return the next state and plan; the answer to the plan's last action is the next answer.

    Actions are executed in order. If one fails, the actions after it are not executed and the
    answer is ``Failed``.
    """
    return _ON[type(answer)](state, answer)


def _on_rested(state: Relay, _: Rested) -> Next:
    """Continue in the current phase."""
    match state.phase:
        case Phase.IDLE:
            return state, (TryLock(),)
        case Phase.VERIFY | Phase.HALT:
            return state, (IdentifyStores(),)
        case Phase.FENCE:
            return fence(state)
        case Phase.REPLAY:
            return read_on(state)
        case Phase.RUN:
            return state, (ReadCommits(state.at.position, most_of(state.suspects)),)


_ON: Final[dict[type[Any], Callable[[Relay, Any], Next]]] = {
    Rested: _on_rested,
    StopAsked: on_stop_asked,
    LockTaken: on_lock_taken,
    LockBusy: on_lock_busy,
    StoresIdentified: on_stores_identified,
    Fenced: on_fenced,
    Bounds: on_bounds,
    ManifestsRead: on_manifests_read,
    Compared: on_compared,
    Stored: on_stored,
    Commits: on_commits_read,
    DeliveryReport: on_delivered,
    CommitEnded: on_commit_ended,
    Failed: on_failed,
}
