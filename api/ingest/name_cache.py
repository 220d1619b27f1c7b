"""Names and their interned ids, remembered for a moment so that a prepare asks PostgreSQL once.

A group's settings take effect within a second in every process; a topic's id never changes.
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
REMEMBERED_MAX: Final = 10_000
"""Groups or topics kept at most; beyond it the memory starts again."""


class NameCache:
    """Producer groups by name, topics by name, group names by id."""

    def __init__(self, names: InternedNames, clock: Clock) -> None:
        self._names = names
        self._clock = clock
        self._lock = asyncio.Lock()
        self._groups: dict[str, ProducerGroup | None] = {}
        self._read_at: dict[str, float] = {}
        self._topics: dict[str, int] = {}
        self._group_names: dict[int, str] = {}

    async def know_groups(self, names: Collection[str]) -> None:
        """Make sure that ``group`` can answer for these names; raises DatabaseUnavailable."""
        if not self._stale(names):
            return
        async with self._lock:
            asked = self._stale(names)
            if asked:
                self._remember(asked, await self._names.groups(asked))

    def group(self, name: str) -> ProducerGroup | None:
        """Return a known group, or None when no such group is registered."""
        return self._groups.get(name)

    def forget(self, name: str) -> None:
        """Read this group again at its next use, because it was changed here."""
        self._read_at.pop(name, None)

    async def know_topics(self, names: Iterable[str]) -> None:
        """Make sure that ``topic_id`` knows these names; interns the new ones."""
        missing = [name for name in names if name not in self._topics]
        if not missing:
            return
        if len(self._topics) + len(missing) > REMEMBERED_MAX:
            self._topics.clear()
        self._topics.update(await self._names.intern_topics(missing))

    def topic_id(self, name: str) -> int:
        """Return the interned id of a known topic."""
        return self._topics[name]

    async def ids_of(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group."""
        if caller.groups is None:
            return None
        await self.know_groups(caller.groups)
        found = (self._groups.get(name) for name in caller.groups)
        return frozenset(group.id for group in found if group is not None)

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return the names of groups by id, deleted ones included.

        They label metrics; while PostgreSQL is away those not yet known stay unnamed.
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

    def _remember(self, asked: Collection[str], found: dict[str, ProducerGroup]) -> None:
        if len(self._groups) + len(asked) > REMEMBERED_MAX:
            self._groups.clear()
            self._read_at.clear()
        now = self._clock.monotonic()
        for name in asked:
            self._groups[name] = found.get(name)
            self._read_at[name] = now
