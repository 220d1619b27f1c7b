"""One direction of one connection: delays and delivers bytes as the faults require."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Final

from chaos.proxies.link_faults import Direction, LinkFaults

MOST_WAITING: Final = 4 << 20
"""Limit of undelivered bytes; above it nothing is read, like with a full receive window."""
DRIP_SECONDS: Final = 0.05
LOOK_SECONDS: Final = 0.02
"""The interval at which a change of the faults is noticed."""


class Pipe:
    """Delivers bytes to one writer in order."""

    def __init__(
        self,
        direction: Direction,
        writer: asyncio.StreamWriter,
        faults: Callable[[], LinkFaults],
        chance: random.Random,
    ) -> None:
        self._direction = direction
        self._writer = writer
        self._faults = faults
        self._chance = chance
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._bytes = 0
        self._due = 0.0
        self._changed = asyncio.Event()

    async def send(self, data: bytes) -> None:
        """Accept bytes for delivery; wait only while too many are undelivered."""
        if not data:
            return
        faults, now = self._faults(), asyncio.get_running_loop().time()
        delay = faults.latency_seconds + self._chance.uniform(0.0, faults.jitter_seconds)
        self._due = max(self._due, now + delay)
        self._waiting.append((self._due, data))
        self._bytes += len(data)
        self._wake()
        while self._bytes > MOST_WAITING:
            await self._wait_changed()

    async def flushed(self) -> None:
        """Return once everything is delivered and the direction is not cut."""
        while self._bytes:
            await self._wait_changed()
        await self._wait_healed()

    async def run(self) -> None:
        """Deliver until cancelled. Raises ConnectionError when the receiver is gone."""
        while True:
            while not self._waiting:
                await self._wait_changed()
            due, data = self._waiting.popleft()
            await self._until(due)
            await self._deliver(data)
            self._bytes -= len(data)
            self._wake()

    async def _until(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        await self._wait_healed()

    async def _deliver(self, data: bytes) -> None:
        while data:
            rate = self._faults().bytes_per_second
            size = len(data) if rate is None else max(1, int(rate * DRIP_SECONDS))
            self._writer.write(data[:size])
            await self._writer.drain()
            data = data[size:]
            if rate is not None:
                await asyncio.sleep(size / rate)
            await self._wait_healed()

    async def _wait_healed(self) -> None:
        while self._direction in self._faults().cut:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)

    def _wake(self) -> None:
        self._changed.set()

    async def _wait_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()
