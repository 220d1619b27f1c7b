"""How many requests are served at the same time, and what of it one tenant may have."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from api.http.problems import Problem


class InFlight:
    """Enter it for each request but an end, which is never refused for load (P25)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    def __enter__(self) -> None:
        """Take a place; raises Problem ``overloaded`` if all are taken."""
        if self._count >= self._limit:
            raise Problem(slug="overloaded", retry_after_seconds=1)
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1


class TenantShares:
    """Places of which a tenant holds at most as many as are left free, so each finds some."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._held: dict[Hashable, int] = {}

    def allow(self, tenant: Hashable, places: int) -> bool:
        """Return whether a tenant may take so many places now."""
        return self._held.get(tenant, 0) + places <= self._free - places

    def take(self, tenant: Hashable, places: int) -> None:
        """Give a tenant places."""
        self._free -= places
        self._held[tenant] = self._held.get(tenant, 0) + places

    def give_back(self, tenant: Hashable, places: int) -> None:
        """Make places of a tenant free again."""
        self._free += places
        left = self._held.get(tenant, 0) - places
        if left:
            self._held[tenant] = left
        else:
            self._held.pop(tenant, None)

    @contextmanager
    def held(self, tenant: Hashable, places: int) -> Iterator[None]:
        """Give a tenant places for a block."""
        self.take(tenant, places)
        try:
            yield
        finally:
            self.give_back(tenant, places)
