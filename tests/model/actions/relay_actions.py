"""The outcomes of a relay's next action: every answer, with its effect on the two stores.

The first outcome of each action is the one without a fault; a run in which faults have stopped
always takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Failure
from tests.model.actions import broker_actions, database_actions
from tests.model.relays import Local, ReadEnd
from tests.model.scene import AtBroker, AtDatabase, Outcome

Perform = Callable[[Any, Any], Iterator[Outcome]]

_ON_DATABASE: Final[dict[type[Any], Perform]] = {
    actions.IdentifyStores: database_actions.identify,
    actions.LeaveTransactionalId: database_actions.leave,
    actions.ReadBounds: database_actions.read_row,
    actions.Compare: database_actions.compare,
    actions.Recover: database_actions.recover_batch,
    actions.SaveProgress: database_actions.save_progress,
    actions.StoreHalt: database_actions.halt,
    actions.ReadCommits: database_actions.read_commits,
    actions.HoldRecords: database_actions.hold_messages,
    actions.ReadHeld: database_actions.read_held,
    actions.Postpone: database_actions.postpone_held,
    actions.MarkReleased: database_actions.mark_rows,
}
_ON_BROKER: Final[dict[type[Any], Perform]] = {
    actions.Fence: broker_actions.fence,
    ReadEnd: broker_actions.read_end,
    actions.ReadManifests: broker_actions.read_manifests,
    actions.Publish: broker_actions.publish,
    actions.Commit: broker_actions.commit,
}


def asks_database(local: Local) -> bool:
    """Return whether the relay's next action is on PostgreSQL."""
    return type(local.plan[0]) in _ON_DATABASE


def at_database(local: Local, scene: AtDatabase) -> list[Outcome]:
    """Return every outcome of the relay's next action; none while it has to wait."""
    action = local.plan[0]
    return list(_ON_DATABASE[type(action)](scene, action))


def at_lost_session(local: Local) -> list[Outcome]:
    """Return the outcome of the next action when the session's PostgreSQL is gone."""
    text = f"{type(local.plan[0]).__name__}: its session is lost"
    return [Outcome(text, answers.Failed(Failure.DATABASE))]


def at_broker(local: Local, scene: AtBroker) -> list[Outcome]:
    """Return every outcome of the relay's next action."""
    action = local.plan[0]
    return list(_ON_BROKER[type(action)](scene, action))
