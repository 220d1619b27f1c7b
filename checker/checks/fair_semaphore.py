"""Shares the calls under way between producer groups, so that a hanging one holds up no other.

A group may hold no more calls than are still free: one that hangs takes half of them, the next half
of what is left. Freed calls go to the waiting group that holds the fewest, so a group without any
waits for one call to end, not for its turn in a queue of others' calls.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """At most ``limit`` calls under way, shared between groups by what each one holds."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._held: Counter[int] = Counter()
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def call(self, group_id: int) -> AsyncIterator[None]:
        """Wait for a call of this group, hold it for the block, then hand it on."""
        await self._take(group_id)
        try:
            yield
        finally:
            self._give(group_id)

    def held(self, group_id: int) -> int:
        """Return how many calls a group has under way."""
        return self._held[group_id]

    async def _take(self, group_id: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group_id, deque()).append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give(group_id)
            raise

    def _give(self, group_id: int) -> None:
        self._free += 1
        self._held[group_id] -= 1
        if not self._held[group_id]:
            del self._held[group_id]
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free calls to the waiting groups that hold the fewest; equals take turns."""
        while self._waiting:
            group_id = min(self._waiting, key=lambda group: self._held[group])
            if self._held[group_id] >= self._free:
                return
            queue = self._waiting.pop(group_id)
            turn = queue.popleft()
            if queue:
                self._waiting[group_id] = queue
            if not turn.done():
                self._free -= 1
                self._held[group_id] += 1
                turn.set_result(None)
