"""A world: nine small numbers; the values of these numbers are stored once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from tests.model.scene import Fault

NOBODY: Final = -1
ABSENT: Final = -1
UNCHANGED: Final = -1
_Value = TypeVar("_Value", bound=Hashable)


class World(NamedTuple):
    """A state of the search: numbers of values, and a few bits."""

    database: int
    standby: int
    """The value of a standby that has stopped receiving; ABSENT while it follows."""
    broker: int
    owners: tuple[int, int]
    """Which relay has the handle of the current epoch, by transactional id."""
    first: int
    second: int
    """The relays' local states; ABSENT where there is one only."""
    broken: int
    """A bit for each relay whose session belongs to a PostgreSQL that is gone."""
    left: int
    """Faults that may still happen, four bits each."""
    lost: int
    """A bit for each message whose COMMIT was lost with a tail."""


class Transition(NamedTuple):
    """One step of the world; ``swapped`` if the two relays were exchanged to sort them."""

    who: int
    text: str
    world: World
    swapped: bool = False


class Following(NamedTuple):
    """All possible next worlds."""

    steps: list[Transition]
    calm: World
    """The next world when faults have stopped; itself when nothing is left to do."""


class Numbered(Generic[_Value]):
    """Values by number; equal values have one number."""

    def __init__(self) -> None:
        self._numbers: dict[_Value, int] = {}
        self.values: list[_Value] = []

    def of(self, value: _Value) -> int:
        """Return the number of a value."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class Effect(NamedTuple):
    """The effect of a relay's action on the numbers of a world."""

    text: str
    to: int
    dropped: bool
    closed: bool
    database: int
    """UNCHANGED where the action does not write there."""
    broker: int
    cost: Fault | None
    owns: bool | None
    number: int
    """Of the relay's transactional id."""
