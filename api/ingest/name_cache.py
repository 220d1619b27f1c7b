"""A short-lived cache of names and interned ids, so that a prepare rarely reads PostgreSQL.

A changed group setting takes effect within a second in every process. A topic's id changes only
with the loss of what a failed PostgreSQL had not replicated: the next one may give it to another
topic. So it is read again as often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from outbox.access import Caller
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from outbox.postgres.messages.interned_names import PostgresInternedNames

FRESH_SECONDS: Final = 1.0
TURN_SECONDS: Final = 5.0
"""Longest wait for the reads of others; each of them may wait long for PostgreSQL."""
CACHE_MAX: Final = 10_000
"""Most groups or topics kept; above it the cache is emptied. A request keeps what it was given."""

NamedT = TypeVar("NamedT")


class NameCache:
    """Producer groups by name, topic ids by name, group names by id."""

    def __init__(self, names: PostgresInternedNames, clock: Clock) -> None:
        self._names = names
        self._groups = _FreshValues(names.groups, clock)
        self._group_ids = _FreshValues(names.group_ids, clock)
        self._topics = _FreshValues(names.intern_topics, clock)
        self._group_names: dict[int, str] = {}

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return those of these groups that are registered; raises DatabaseUnavailable."""
        return await self._groups.get(names)

    def forget(self, name: str) -> None:
        """Read this group again at its next use, because this process changed it."""
        self._groups.forget(name)
        self._group_ids.forget(name)

    async def topic_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these topics; intern the new ones. Raises DatabaseUnavailable.

        Interning may wait for a transaction that interns the same name, and delays no other caller.
        """
        new = [name for name in names if name not in self._topics]
        if new:
            self._topics.keep(new, await self._names.intern_topics(new))
        return await self._topics.get(names)

    async def group_ids(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group.

        What a deleted group has left is still its own.
        """
        if caller.groups is None:
            return None
        return frozenset((await self._group_ids.get(caller.groups)).values())

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return the names of groups by id, deleted ones included.

        They are metric labels. While PostgreSQL is down, names not yet loaded are missing.
        """
        missing = [group_id for group_id in ids if group_id not in self._group_names]
        if missing:
            with suppress(DatabaseUnavailable):
                self._group_names.update(await self._names.group_names(missing))
        return self._group_names


class _FreshValues(Generic[NamedT]):
    """Values by name, each as it was read at most FRESH_SECONDS ago; or that there is none."""

    def __init__(
        self, read: Callable[[Collection[str]], Awaitable[dict[str, NamedT]]], clock: Clock
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._values: dict[str, NamedT | None] = {}
        self._read_at: dict[str, float] = {}

    async def get(self, names: Collection[str]) -> dict[str, NamedT]:
        """Return the values of those names that have one; concurrent callers share one read."""
        if not self._stale(names):
            return self._kept(names)
        try:
            await asyncio.wait_for(self._lock.acquire(), TURN_SECONDS)
        except TimeoutError:
            raise DatabaseUnavailable("the reads of others take too long") from None
        try:
            stale = self._stale(names)
            kept = self._kept(set(names).difference(stale))
            found = await self._read(stale) if stale else {}
            self.keep(stale, found)
        finally:
            self._lock.release()
        return kept | found

    def __contains__(self, name: str) -> bool:
        """Return whether a value or its absence is kept, however old."""
        return name in self._values

    def forget(self, name: str) -> None:
        """Read this name again at its next use."""
        self._read_at.pop(name, None)

    def _kept(self, names: Collection[str]) -> dict[str, NamedT]:
        found = ((name, self._values.get(name)) for name in names)
        return {name: value for name, value in found if value is not None}

    def _stale(self, names: Collection[str]) -> list[str]:
        old = self._clock.monotonic() - FRESH_SECONDS
        read_at = self._read_at
        return [name for name in names if read_at.get(name, old) <= old]

    def keep(self, names: Collection[str], found: dict[str, NamedT]) -> None:
        """Keep what was just read of these names."""
        if len(self._values) + len(names) > CACHE_MAX:
            self._values.clear()
            self._read_at.clear()
        now = self._clock.monotonic()
        for name in names:
            self._values[name] = found.get(name)
            self._read_at[name] = now
