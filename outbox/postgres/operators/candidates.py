"""The statements that find the half ids of a list, filled in with the queue that they look at.

A queue is the ids of messages that wait for something, or of all halves. They are planned for the
values of their parameters: what a filter does not ask costs nothing.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, LiteralString

from outbox.messages.message import State
from outbox.operators.message_view import MessageFilter
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
SLICE_ROWS: Final = 20_000
"""The most halves that one page looks at to find matches."""
UNSETTLED: Final = "unsettled"
QUEUES: Final[dict[State | None, str]] = {
    State.PREPARED: "undecided",
    State.PARKED: "parked",
    State.COMMITTED: "unpublished",
}


def queue_of(wanted: MessageFilter) -> str:
    """Return what names the messages: their transaction id, or the queue of their state.

    Some of the named messages may be in another state.
    """
    if wanted.transaction_id is not None:
        return "of_transaction_id"
    return QUEUES.get(wanted.state, "all")


def candidates(queue: str) -> LiteralString:
    """Return the statement that selects up to ``most`` half ids of a queue, newest first."""
    return SQL["candidates"].format(slice=_slice(queue))


def end_of_slice(queue: str) -> LiteralString:
    """Return the statement that reads where a full slice ends; no row if the queue ends in it.

    ``next_before`` is its oldest message, prepared at ``searched_back_to``.
    """
    return SQL["end_of_slice"].format(slice=_slice(queue))


def parameters_of(wanted: MessageFilter) -> dict[str, Any]:
    """Return the parameters of both statements; None is no condition."""
    state = State.COMMITTED if wanted.state is State.PUBLISHED else wanted.state
    return {**asdict(wanted), "state": state, "most": wanted.limit + 1, "slice": SLICE_ROWS}


def _slice(queue: str) -> LiteralString:
    return SQL["slice"].format(queue=SQL[queue])
