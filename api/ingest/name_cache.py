"""A short-lived cache of names and interned ids, so that a prepare rarely reads PostgreSQL.

A changed group setting takes effect within a second in every process; a topic's id never changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from outbox.access import Caller
from outbox.checks.ports import InternedNames
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

FRESH_SECONDS: Final = 1.0
CACHE_MAX: Final = 10_000
"""Most groups or topics kept; above it the cache is emptied."""


class NameCache:
    """Producer groups by name, topic ids by name, group names by id."""

    def __init__(self, names: InternedNames, clock: Clock) -> None:
        self._names = names
        self._clock = clock
        self._lock = asyncio.Lock()
        self._groups: dict[str, ProducerGroup | None] = {}
        self._read_at: dict[str, float] = {}
        self._topics: dict[str, int] = {}
        self._group_names: dict[int, str] = {}

    async def load_groups(self, names: Collection[str]) -> None:
        """Load these groups, so that ``group`` can answer; raises DatabaseUnavailable."""
        if not self._stale(names):
            return
        async with self._lock:
            stale = self._stale(names)
            if stale:
                self._store(stale, await self._names.groups(stale))

    def group(self, name: str) -> ProducerGroup | None:
        """Return a loaded group, or None when no such group is registered."""
        return self._groups.get(name)

    def forget(self, name: str) -> None:
        """Read this group again at its next use, because this process changed it."""
        self._read_at.pop(name, None)

    async def load_topics(self, names: Iterable[str]) -> None:
        """Load the ids of these topics, so that ``topic_id`` can answer; intern the new ones."""
        missing = [name for name in names if name not in self._topics]
        if not missing:
            return
        if len(self._topics) + len(missing) > CACHE_MAX:
            self._topics.clear()
        self._topics.update(await self._names.intern_topics(missing))

    def topic_id(self, name: str) -> int:
        """Return the interned id of a loaded topic."""
        return self._topics[name]

    async def group_ids(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group."""
        if caller.groups is None:
            return None
        await self.load_groups(caller.groups)
        found = (self._groups.get(name) for name in caller.groups)
        return frozenset(group.id for group in found if group is not None)

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return the names of groups by id, deleted ones included.

        They are metric labels. While PostgreSQL is down, names not yet loaded are missing.
        """
        missing = [group_id for group_id in ids if group_id not in self._group_names]
        if missing:
            with suppress(DatabaseUnavailable):
                self._group_names.update(await self._names.group_names(missing))
        return self._group_names

    def _stale(self, names: Collection[str]) -> list[str]:
        old = self._clock.monotonic() - FRESH_SECONDS
        read_at = self._read_at
        return [name for name in names if read_at.get(name, old) <= old]

    def _store(self, names: Collection[str], found: dict[str, ProducerGroup]) -> None:
        if len(self._groups) + len(names) > CACHE_MAX:
            self._groups.clear()
            self._read_at.clear()
        now = self._clock.monotonic()
        for name in names:
            self._groups[name] = found.get(name)
            self._read_at[name] = now
