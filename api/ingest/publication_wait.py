"""Lets callers wait for Kafka's acknowledgement, with one query per tick for all of them.

``Prefer: wait=N`` adds no query per caller: each tick reads the status of every awaited message.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Final

from api.http.tenant_shares import TenantShares
from outbox.errors import DatabaseUnavailable
from outbox.messages.message import MessageStatus
from outbox.messages.message_id import HalfId

TICK_SECONDS: Final = 0.05
WAITING_MAX: Final = 10_000
"""Messages that callers may wait for; a tenant has at most as many as are left free for others."""


class PublicationWait:
    """Watches committed messages until they are published or no caller waits any more."""

    def __init__(
        self,
        read: Callable[[Sequence[HalfId]], Awaitable[Mapping[HalfId, MessageStatus]]],
    ) -> None:
        """Take what reads statuses by id; it may raise DatabaseUnavailable."""
        self._read = read
        self._waiters = TenantShares(WAITING_MAX)
        self._waiting: dict[HalfId, set[asyncio.Future[MessageStatus]]] = defaultdict(set)
        self._watching: asyncio.Task[None] | None = None

    async def wait(
        self, tenant: Hashable, half_ids: Sequence[HalfId], seconds: float
    ) -> Mapping[HalfId, MessageStatus] | None:
        """Return those of the messages that were published within ``seconds``, by id.

        Returns None at once if the tenant has no more places.
        """
        if not half_ids:
            return {}
        if not self._waiters.allow(tenant, len(half_ids)):
            return None
        loop = asyncio.get_running_loop()
        futures = {half_id: loop.create_future() for half_id in half_ids}
        for half_id, future in futures.items():
            self._waiting[half_id].add(future)
        if self._watching is None:
            self._watching = loop.create_task(self._watch())
        with self._waiters.held(tenant, len(half_ids)):
            try:
                await asyncio.wait(futures.values(), timeout=seconds)
            finally:
                for half_id, future in futures.items():
                    self._waiting[half_id].discard(future)
                    if not self._waiting[half_id]:
                        del self._waiting[half_id]
        return {half_id: future.result() for half_id, future in futures.items() if future.done()}

    async def _watch(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(TICK_SECONDS)
                await self._poll()
        finally:
            self._watching = None

    async def _poll(self) -> None:
        try:
            found = await self._read(list(self._waiting))
        except DatabaseUnavailable:
            return
        for half_id, status in found.items():
            for future in self._waiting.get(half_id, ()):
                if status.publication is not None and not future.done():
                    future.set_result(status)
