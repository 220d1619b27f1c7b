"""Shares the calls in flight between producer groups, so that a hanging group delays no other.

A group may hold no more calls than are still free: a hanging group takes half of them, the next one
half of the rest. A freed call goes to the waiting group that holds the fewest. So a group without a
call waits for one call to end, and not behind the queued calls of other groups.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """Allows ``limit`` calls in flight and shares them by the number that each group holds."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._held: Counter[int] = Counter()
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def call(self, group_id: int) -> AsyncIterator[None]:
        """Wait for a call of this group, hold it for the block, then free it."""
        await self._take(group_id)
        try:
            yield
        finally:
            self._give(group_id)

    def held(self, group_id: int) -> int:
        """Return how many calls a group has in flight."""
        return self._held[group_id]

    async def _take(self, group_id: int) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group_id, deque()).append(granted)
        self._hand_out()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self._give(group_id)
            raise

    def _give(self, group_id: int) -> None:
        self._free += 1
        self._held[group_id] -= 1
        if not self._held[group_id]:
            del self._held[group_id]
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free calls to the waiting groups that hold the fewest; equal groups alternate."""
        while self._waiting:
            group_id = min(self._waiting, key=lambda group: self._held[group])
            if self._held[group_id] >= self._free:
                return
            queue = self._waiting.pop(group_id)
            granted = queue.popleft()
            if queue:
                self._waiting[group_id] = queue
            if not granted.done():
                self._free -= 1
                self._held[group_id] += 1
                granted.set_result(None)
