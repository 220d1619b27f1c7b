"""A short-lived cache of names and interned ids, so that a prepare rarely reads PostgreSQL.

A changed group setting takes effect within a second in every process; a topic's id never changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from outbox.access import Caller
from outbox.checks.ports import InternedNames
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

FRESH_SECONDS: Final = 1.0
CACHE_MAX: Final = 10_000
"""Most groups or topics kept; above it the cache is emptied. A request keeps what it was given."""


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

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return those of these groups that are registered; raises DatabaseUnavailable."""
        if not self._stale(names):
            return self._kept(names)
        async with self._lock:
            stale = self._stale(names)
            kept = self._kept(set(names).difference(stale))
            found = await self._names.groups(stale) if stale else {}
            self._store(stale, found)
        return kept | found

    def forget(self, name: str) -> None:
        """Read this group again at its next use, because this process changed it."""
        self._read_at.pop(name, None)

    async def topic_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these topics; intern the new ones. Raises DatabaseUnavailable."""
        kept = {name: self._topics[name] for name in names if name in self._topics}
        missing = [name for name in names if name not in kept]
        if not missing:
            return kept
        interned = await self._names.intern_topics(missing)
        if len(self._topics) + len(interned) > CACHE_MAX:
            self._topics.clear()
        self._topics.update(interned)
        return kept | interned

    async def group_ids(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group."""
        if caller.groups is None:
            return None
        found = await self.groups(caller.groups)
        return frozenset(group.id for group in found.values())

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return the names of groups by id, deleted ones included.

        They are metric labels. While PostgreSQL is down, names not yet loaded are missing.
        """
        missing = [group_id for group_id in ids if group_id not in self._group_names]
        if missing:
            with suppress(DatabaseUnavailable):
                if len(self._group_names) > CACHE_MAX:
                    self._group_names.clear()
                    missing = list(ids)
                self._group_names.update(await self._names.group_names(missing))
        return self._group_names

    def _kept(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        found = ((name, self._groups.get(name)) for name in names)
        return {name: group for name, group in found if group is not None}

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
