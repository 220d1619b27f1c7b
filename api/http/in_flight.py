"""Which complete requests of authenticated callers are served, how many, and in which order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractContextManager, asynccontextmanager
from weakref import WeakValueDictionary

from api.http.problems import Problem


class InFlight:
    """Enter it for each request; ``limit`` refuses new ones, but never an end (P25)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1

    def refuse_when_full(self) -> None:
        """Raise Problem ``overloaded`` if no further request may be served now."""
        if self._count >= self._limit:
            raise Problem(slug="overloaded", retry_after_seconds=1)

    def resting(self) -> AbstractContextManager[None]:
        """Count one request less for a block in which it only waits for others."""
        return _Resting(self)


class _Resting:
    def __init__(self, counted: InFlight) -> None:
        self._counted = counted

    def __enter__(self) -> None:
        self._counted.__exit__()

    def __exit__(self, *_: object) -> None:
        self._counted.__enter__()


class TenantShares:
    """Places of which a tenant holds at most as many as are left free, so each finds some."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._held: Counter[Hashable] = Counter()

    def allow(self, tenant: Hashable, places: int) -> bool:
        """Return whether a tenant may take so many places now."""
        return self._held[tenant] + places <= self._free - places

    def take(self, tenant: Hashable, places: int) -> None:
        """Give a tenant places."""
        self._free -= places
        self._held[tenant] += places

    def give_back(self, tenant: Hashable, places: int) -> None:
        """Make places of a tenant free again."""
        self._free += places
        self._held[tenant] -= places
        if not self._held[tenant]:
            del self._held[tenant]


class TenantTurns:
    """One piece of work at a time; tenants take turns, however many requests one of them has."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._turns_of: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, tenant: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of the tenant, and have it for the block."""
        own = self._turns_of.setdefault(tenant, asyncio.Lock())
        async with own, self._turn:
            yield
