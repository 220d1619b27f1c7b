"""One direction of one connection: bytes go in at once and come out as the faults allow."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Final

from chaos.proxies.link_faults import Direction, LinkFaults

MOST_WAITING: Final = 4 << 20
"""Bytes on their way; beyond that nothing is read, as when a receiver's window is full."""
DRIP_SECONDS: Final = 0.05
LOOK_SECONDS: Final = 0.02
"""How soon a change of the faults is noticed."""


class Pipe:
    """Sends to one writer what it is given, in order."""

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
        """Put bytes on their way; waits only while too many are."""
        if not data:
            return
        faults, now = self._faults(), asyncio.get_running_loop().time()
        delay = faults.latency_seconds + self._chance.uniform(0.0, faults.jitter_seconds)
        self._due = max(self._due, now + delay)
        self._waiting.append((self._due, data))
        self._bytes += len(data)
        self._wake()
        while self._bytes > MOST_WAITING:
            await self._woken()

    async def flushed(self) -> None:
        """Return once everything has been handed to the receiver, and an end could be as well."""
        while self._bytes:
            await self._woken()
        await self._healed()

    async def run(self) -> None:
        """Deliver until cancelled. Raises ConnectionError when the receiver is gone."""
        while True:
            while not self._waiting:
                await self._woken()
            due, data = self._waiting.popleft()
            await self._until(due)
            await self._deliver(data)
            self._bytes -= len(data)
            self._wake()

    async def _until(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        await self._healed()

    async def _deliver(self, data: bytes) -> None:
        while data:
            rate = self._faults().bytes_per_second
            size = len(data) if rate is None else max(1, int(rate * DRIP_SECONDS))
            self._writer.write(data[:size])
            await self._writer.drain()
            data = data[size:]
            if rate is not None:
                await asyncio.sleep(size / rate)
            await self._healed()

    async def _healed(self) -> None:
        while self._direction in self._faults().cut:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)

    def _wake(self) -> None:
        self._changed.set()

    async def _woken(self) -> None:
        self._changed.clear()
        await self._changed.wait()
