"""Looks at the whole installation in a thread; callers that come meanwhile share the look."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from api.admin.tenant_slots import TenantSlots
from outbox.clock import Clock
from outbox.errors import OutboxError
from outbox.operators.health_check import HealthCheck
from outbox.operators.store_view import (
    PartitionState,
    ShardState,
    ShownSetting,
    StoreView,
)
from outbox.telemetry.redaction import Redaction

FRESH_SECONDS: Final = 1.0
"""How long a look is remembered, so that many open pages cost the stores one look a second."""
HEALTH_SECONDS: Final = 4.0
"""The same for the health checks, which cost most."""
T = TypeVar("T")


class SharedStoreView:
    """The StoreView for asynchronous callers; what it shows has no secret."""

    def __init__(self, view: StoreView, redact: Redaction, clock: Clock) -> None:
        self._view = view
        self._redact = redact
        self._clock = clock
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._looks: dict[str, tuple[float, Any]] = {}
        self._searches = TenantSlots("searches for a record", of_a_tenant=2, in_all=8)

    async def shards(self) -> Sequence[ShardState]:
        """Return every shard. Raises DatabaseUnavailable."""
        return await self._look("shards", self._view.shards)

    async def partitions(self) -> Sequence[PartitionState]:
        """Return the partitions. Raises DatabaseUnavailable, KafkaUnavailable."""
        return await self._look("partitions", self._view.partitions)

    async def health(self) -> Sequence[HealthCheck]:
        """Return the checks of both stores."""
        found = await self._look("health", self._view.health, HEALTH_SECONDS)
        return [replace(each, detail=self._redact(each.detail)) for each in found]

    async def message_at(
        self, tenant: Hashable, topic: str, partition: int, offset: int
    ) -> str | None:
        """Return the message of a record.

        Raises KafkaUnavailable, and Problem ``rate-limited`` while many are looked for.
        """
        with self._searches.taken_by(tenant):
            return await asyncio.to_thread(self._view.message_at, topic, partition, offset)

    def settings(self) -> Sequence[ShownSetting]:
        """Return every setting."""
        return self._view.settings()

    async def _look(self, name: str, read: Callable[[], T], lasts: float = FRESH_SECONDS) -> T:
        async with self._locks[name]:
            until, found = self._looks.get(name, (float("-inf"), None))
            if self._clock.monotonic() >= until:
                found = await self._ask(read)
                self._looks[name] = (self._clock.monotonic() + lasts, found)
        if isinstance(found, OutboxError):
            raise found
        seen: T = found
        return seen

    async def _ask(self, read: Callable[[], T]) -> T | OutboxError:
        """Return what was seen, or the error: both are remembered."""
        try:
            return await asyncio.to_thread(read)
        except OutboxError as error:
            return error
