"""Small fakes of what the daemon's parts talk to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from outbox.checks.check_round import DueSlice, GroupDue, Settled, Settlement
from outbox.errors import CursorMoved, DatabaseUnavailable


class ManualClock:
    """A clock that a test turns by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """Return the hand-turned time."""
        return datetime(2026, 9, 21, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Return the hand-turned seconds."""
        return self.seconds


class Beats:
    """Heartbeats that are only remembered."""

    def __init__(self) -> None:
        self.beaten: list[str] = []

    async def beat(self, chore: str) -> None:
        """Remember a beat."""
        self.beaten.append(chore)


class FreeTurns:
    """Turns that nobody else takes, but for those a test names as busy."""

    def __init__(self, *busy: int) -> None:
        self.busy = set(busy)

    @asynccontextmanager
    async def turn(self, kind: str, number: int = 0) -> AsyncIterator[bool]:
        """Hold a turn unless it is busy."""
        yield number not in self.busy


class ListedQueue:
    """A check queue of prepared slices; what is settled is remembered."""

    def __init__(self, slices: Sequence[DueSlice] = (), groups: Sequence[GroupDue] = ()) -> None:
        self.slices = list(slices)
        self.groups = groups
        self.settled: list[Settlement] = []
        self.claimed: list[int] = []
        self.away = False
        self.overtaken = False

    async def due_groups(self) -> Sequence[GroupDue]:
        """Return the listed groups."""
        return self.groups

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Return the next slice."""
        self.claimed.append(producer_group_id)
        if self.away:
            raise DatabaseUnavailable("away")
        return self.slices.pop(0) if self.slices else None

    async def settle(self, settlement: Settlement) -> Settled:
        """Remember a settlement, unless another checker is said to have been faster."""
        if self.overtaken:
            raise CursorMoved
        self.settled.append(settlement)
        return Settled(resolution_seconds={}, conflicts=frozenset(), parked=frozenset())
