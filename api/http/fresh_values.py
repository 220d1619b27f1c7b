"""Values by name that are kept for a short time, so that a request rarely reads PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, Generic, TypeVar

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

TURN_SECONDS: Final = 5.0
"""Longest wait for a read and for those of others; each may wait long for PostgreSQL."""
KEPT_MAX: Final = 10_000
"""Most names kept; above it the one that was read longest ago is forgotten."""

_UNREAD: Final = (float("-inf"), None)
ValueT = TypeVar("ValueT")


class FreshValues(Generic[ValueT]):
    """Values by name, each as a read found it at most ``seconds`` ago; or that there is none."""

    def __init__(
        self,
        read: Callable[[Collection[str]], Awaitable[Mapping[str, ValueT]]],
        clock: Clock,
        seconds: float,
    ) -> None:
        self._read = read
        self._clock = clock
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._found: dict[str, tuple[float, ValueT | None]] = {}
        """When the read of a name began, and its value."""

    async def get(self, names: Collection[str]) -> dict[str, ValueT]:
        """Return the values of those names that have one. Raises DatabaseUnavailable."""
        if self.has_stale(names):
            await self.refresh(names)
        return self.kept(names)

    async def refresh(self, names: Collection[str]) -> None:
        """Read these names unless another caller, whose turn is awaited, has just done so."""
        asked_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(TURN_SECONDS), self._turn:
                if self.has_stale(names, asked_at):
                    began = self._clock.monotonic()
                    self.keep(names, await self._read(names), began)
        except TimeoutError:
            raise DatabaseUnavailable("the reads of others take too long") from None

    def has_stale(self, names: Collection[str], now: float | None = None) -> bool:
        """Return whether one of these names must be read again."""
        old = (self._clock.monotonic() if now is None else now) - self._seconds
        return any(self._found.get(name, _UNREAD)[0] <= old for name in names)

    def kept(self, names: Collection[str]) -> dict[str, ValueT]:
        """Return the values of those names that have one, however old."""
        found = [(name, self._found.get(name, _UNREAD)[1]) for name in names]
        return {name: value for name, value in found if value is not None}

    def keep(self, names: Collection[str], found: Mapping[str, ValueT], began: float) -> None:
        """Keep what a read that ``began`` then has found of these names."""
        for name in names:
            self._found.pop(name, None)
            self._found[name] = began, found.get(name)
        while len(self._found) > KEPT_MAX:
            del self._found[next(iter(self._found))]

    def __contains__(self, name: str) -> bool:
        """Return whether a value or its absence is kept, however old."""
        return name in self._found

    def forget(self, matches: Callable[[ValueT | None], bool]) -> None:
        """Read the names of these values again at their next use."""
        for name, (_, value) in list(self._found.items()):
            if matches(value):
                del self._found[name]
