"""Which complete requests of authenticated callers are served, how many, and in which order."""

from __future__ import annotations

import asyncio
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
        """Count one request less for a block in which it only waits for Kafka."""
        return _Resting(self)


class _Resting:
    def __init__(self, counted: InFlight) -> None:
        self._counted = counted

    def __enter__(self) -> None:
        self._counted.__exit__()

    def __exit__(self, *_: object) -> None:
        self._counted.__enter__()


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
