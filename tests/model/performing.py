"""What may come of a relay's next action: every answer, with what it does to the two stores.

The first outcome of each action is the one without a fault; a run in which faults have stopped
takes it always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from outbox.relay.protocol import actions as do
from outbox.relay.protocol import answers as came
from outbox.relay.protocol.state import Failure
from tests.model import broker_actions, database_actions
from tests.model.relays import Local, ReadEnd
from tests.model.scene import AtBroker, AtDatabase, Outcome

Performing = Callable[[Any, Any], Iterator[Outcome]]

_ON_DATABASE: Final[dict[type[Any], Performing]] = {
    do.ReadBounds: database_actions.read_row,
    do.Compare: database_actions.compare,
    do.Recover: database_actions.recover_batch,
    do.SaveProgress: database_actions.save_progress,
    do.StoreHalt: database_actions.halt,
    do.ReadCommits: database_actions.read_commits,
    do.Hold: database_actions.hold_messages,
    do.ReadHeld: database_actions.read_held,
    do.Postpone: database_actions.postpone_held,
    do.MarkReleased: database_actions.mark_rows,
}
_ON_BROKER: Final[dict[type[Any], Performing]] = {
    do.Fence: broker_actions.fence,
    ReadEnd: broker_actions.read_end,
    do.ReadManifests: broker_actions.read_manifests,
    do.Publish: broker_actions.publish,
    do.PublishManifest: broker_actions.publish_manifest,
    do.Commit: broker_actions.commit,
}


def asks_database(local: Local) -> bool:
    """Tell which of the two stores the relay's next action is about."""
    return type(local.plan[0]) in _ON_DATABASE


def at_database(local: Local, scene: AtDatabase) -> list[Outcome]:
    """Return every outcome of the relay's next action; none while it has to wait."""
    action = local.plan[0]
    return list(_ON_DATABASE[type(action)](scene, action))


def at_lost_session(local: Local) -> list[Outcome]:
    """Return what comes of the next action when the session's PostgreSQL is gone."""
    text = f"{type(local.plan[0]).__name__}: its session is lost"
    return [Outcome(text, came.Failed(Failure.DATABASE))]


def at_broker(local: Local, scene: AtBroker) -> list[Outcome]:
    """Return every outcome of the relay's next action."""
    action = local.plan[0]
    return list(_ON_BROKER[type(action)](scene, action))
