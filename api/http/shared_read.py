"""One run of a read answers everybody who asks meanwhile.

So a look at the stores costs the same whether one caller asks or a thousand strangers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from outbox.clock import Clock

T = TypeVar("T")


class SharedRead(Generic[T]):
    """A read whose result, or error, is remembered for ``seconds`` after it has ended."""

    def __init__(
        self, read: Callable[[], Awaitable[T]], clock: Clock, seconds: float = 0.0
    ) -> None:
        self._read = read
        self._clock = clock
        self._seconds = seconds
        self._until = float("-inf")
        self._running: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Return what was read, or raise the error of the read."""
        running = self._running
        if running is None or (running.done() and self._clock.monotonic() >= self._until):
            running = self._running = asyncio.create_task(self._run())
        return await asyncio.shield(running)

    async def _run(self) -> T:
        try:
            return await self._read()
        finally:
            self._until = self._clock.monotonic() + self._seconds
