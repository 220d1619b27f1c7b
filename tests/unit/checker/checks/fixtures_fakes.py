"""Small fakes of the ports that the checker's parts use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from outbox.checks.check_round import DueSlice, GroupDue, Settled, Settlement
from outbox.errors import DatabaseUnavailable


class ManualClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """Return the set time."""
        return datetime(2026, 9, 21, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Return the set seconds."""
        return self.seconds


class Beats:
    """Heartbeats kept in a list."""

    def __init__(self) -> None:
        self.beaten: list[str] = []

    async def beat(self, task: str) -> None:
        """Add a beat to the list."""
        self.beaten.append(task)


class FreeLocks:
    """Advisory locks that are free, except those that a test names as busy."""

    def __init__(self, *busy: int) -> None:
        self.busy = set(busy)

    @asynccontextmanager
    async def try_lock(self, kind: str, number: int = 0) -> AsyncIterator[bool]:
        """Hold a lock unless it is busy."""
        yield number not in self.busy


class ListedQueue:
    """A check queue of prepared slices; settlements are kept in a list."""

    def __init__(self, slices: Sequence[DueSlice] = (), groups: Sequence[GroupDue] = ()) -> None:
        self.slices = list(slices)
        self.groups = groups
        self.settled: list[Settlement] = []
        self.claimed: list[int] = []
        self.unavailable = False

    async def due_groups(self) -> Sequence[GroupDue]:
        """Return the listed groups."""
        return self.groups

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Return the next slice."""
        self.claimed.append(producer_group_id)
        if self.unavailable:
            raise DatabaseUnavailable("unavailable")
        return self.slices.pop(0) if self.slices else None

    async def settle(self, settlement: Settlement) -> Settled:
        """Keep a settlement."""
        self.settled.append(settlement)
        return Settled(resolution_seconds={}, conflicts=frozenset(), parked=frozenset())
