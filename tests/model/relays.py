"""Drives the relay's own ``step`` in the model: every (state, plan) it can reach gets a number.

``step`` is called once for each numbered state and answer. Actions that concern the relay alone
(begin, rest, drop the handle, close the session, take the lock that gives no safety) are done at
once, because no other process can see the time. Every other action is a step of the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from outbox.relay.protocol.actions import (
    Action,
    CloseSession,
    DropHandle,
    Rest,
    TryLock,
)
from outbox.relay.protocol.answers import Answer, Failed, LockTaken, Rested
from outbox.relay.protocol.state import Phase, Progress, Relay
from outbox.relay.protocol.transition import Next

Step = Callable[[Relay, Answer], Next]


@dataclass(frozen=True, slots=True)
class RowRead:
    """The first half of the answer to ReadBounds: the two stores are read one after the other."""

    row: Progress | None


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """The second half of ReadBounds: read the log, after the row."""

    row: Progress | None


ModelAction = Action | ReadEnd
ModelAnswer = Answer | RowRead | None
"""None: the action is done and the plan continues."""


class Local(NamedTuple):
    """The state of a relay and its next actions."""

    state: Relay
    plan: tuple[ModelAction, ...]


class Move(NamedTuple):
    """The next local state after an answer, and what the relay dropped on the way."""

    to: int
    dropped: bool = False
    closed: bool = False


class Relays:
    """Numbers the relay's local states and stores the next state for each answer."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._numbers: dict[Local, int] = {}
        self.known: list[Local] = []
        self._moves: dict[tuple[int, ModelAnswer], Move] = {}
        self.fresh = self._settled(*step(Relay(shard=0), Rested())).to
        """The number of a relay that has just started."""

    def after(self, number: int, answer: ModelAnswer) -> Move:
        """Return the move after the answer to the next action."""
        key = (number, answer)
        move = self._moves.get(key)
        if move is None:
            move = self._moves[key] = self._answered(*self.known[number], answer)
        return move

    def _answered(self, state: Relay, plan: tuple[ModelAction, ...], answer: ModelAnswer) -> Move:
        if isinstance(answer, RowRead):
            return self._settled(state, (ReadEnd(answer.row),))
        if answer is None:
            return self._settled(state, plan[1:])
        if len(plan) > 1 and not isinstance(answer, Failed):
            return self._settled(state, plan[1:])
        return self._settled(*self._step(state, answer))

    def _settled(self, state: Relay, plan: tuple[ModelAction, ...]) -> Move:
        """Do the actions that concern the relay alone."""
        dropped = closed = False
        while True:
            match plan[0]:
                case TryLock():
                    state, plan = self._step(state, LockTaken())
                    continue
                case Rest():
                    state, plan = self._step(state, Rested())
                    continue
                case DropHandle():
                    dropped = True
                case CloseSession():
                    closed = True
                case _:
                    return Move(self._number(Local(canonical(state), plan)), dropped, closed)
            plan = plan[1:]

    def _number(self, local: Local) -> int:
        number = self._numbers.setdefault(local, len(self.known))
        if number == len(self.known):
            self.known.append(local)
        return number


def canonical(state: Relay) -> Relay:
    """Remove what cannot have an effect any more.

    A second failure in a row only lengthens rests. Times are only compared with the next answer's,
    and the model tries every outcome of that comparison, so they may all be zero. The log's end is
    read in REPLAY alone; identities and an old halt are overwritten in VERIFY before they are read.
    """
    quiet = replace(
        state,
        failures=min(state.failures, 1),
        waited=0.0,
        signed_at=0.0,
        saved_at=None if state.saved_at is None else 0.0,
        end=state.end if state.phase is Phase.REPLAY else 0,
    )
    if state.phase in (Phase.IDLE, Phase.VERIFY):
        return replace(quiet, installation=None, identity=None, halt=None)
    return quiet
