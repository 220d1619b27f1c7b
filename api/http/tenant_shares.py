"""What one tenant may have of a number of places."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from api.http.problems import Problem

SLOW_PLACES: Final = 5
"""Of slow work for operators: it is done for one tenant twice at a time, four times in all."""
RETRY_SECONDS: Final = 5


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

    @contextmanager
    def place(self, tenant: Hashable, what: str) -> Iterator[None]:
        """Give a tenant one place for a block. Raises Problem ``rate-limited`` if it has none."""
        if not self.allow(tenant, 1):
            detail = f"too many {what} at a time"
            raise Problem(slug="rate-limited", detail=detail, retry_after_seconds=RETRY_SECONDS)
        with self.held(tenant, 1):
            yield
