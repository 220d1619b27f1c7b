"""Which complete requests of authenticated callers are served, how many, and in which order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
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


class UnansweredEnds:
    """The memory of ends until they are answered, also of those whose clients have gone.

    Their number is limited for no load that the connections allow: a tenant has room for two ends a
    connection. More of them wait only while PostgreSQL stands still and clients come and go.
    """

    def __init__(self, connections: int, largest_body: int) -> None:
        least = 4 * _end_bytes(largest_body)
        self._bytes = TenantShares(max(4 * connections * _end_bytes(0), least))

    @contextmanager
    def place(self, tenant: Hashable, body_bytes: int) -> Iterator[None]:
        """Hold the place of a request for a block; raises Problem if the tenant has no more."""
        size = _end_bytes(body_bytes)
        if not self._bytes.allow(tenant, size):
            detail = "too many ends wait for PostgreSQL; nothing was stored"
            raise Problem(slug="database-unavailable", detail=detail, retry_after_seconds=1)
        self._bytes.take(tenant, size)
        try:
            yield
        finally:
            self._bytes.give_back(tenant, size)


def _end_bytes(body_bytes: int) -> int:
    """Return about what a waiting request for an end takes in memory (measured)."""
    return 16_384 + 4 * body_bytes


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
