"""One relayed connection: two pipes, and what looks into each."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from chaos.proxies.link_faults import Direction, LinkFaults
from chaos.proxies.pipe import Pipe

READ_BYTES: Final = 1 << 16
FLUSH_SECONDS: Final = 1.0
"""How long a cut waits for what has passed before it."""
AT_ONCE: Final = struct.pack("ii", 1, 0)


class Passed(NamedTuple):
    """What may go on, and whether the connection is cut behind it."""

    data: bytes
    cut: bool = False


Look = Callable[[bytes], Awaitable[Passed]]


class Inspector(Protocol):
    """Looks into both directions of one connection."""

    async def up(self, data: bytes) -> Passed:
        """Return what of the client's bytes may pass now."""

    async def down(self, data: bytes) -> Passed:
        """Return what of the server's bytes may pass now."""


class Blind:
    """Lets everything pass."""

    async def up(self, data: bytes) -> Passed:
        """Let it pass."""
        return Passed(data)

    async def down(self, data: bytes) -> Passed:
        """Let it pass."""
        return Passed(data)


class Connection:
    """A client's connection and ours to the server."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        inspector: Inspector,
        faults: Callable[[], LinkFaults],
        chance: random.Random,
    ) -> None:
        self._client_reader, self._client = client
        self._server_reader, self._server = server
        self._inspector = inspector
        self._to_server = Pipe(Direction.UP, self._server, faults, chance)
        self._to_client = Pipe(Direction.DOWN, self._client, faults, chance)

    async def relay(self) -> None:
        """Relay until one side ends or a rule cuts the connection."""
        inspector = self._inspector
        pumps = (
            self._pump(self._client_reader, inspector.up, self._to_server),
            self._pump(self._server_reader, inspector.down, self._to_client),
        )
        steps = (*pumps, self._to_server.run(), self._to_client.run())
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(step) for step in steps]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            broken = any(task.exception() or task.result() for task in done)
            await self._end(broken)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.reset()

    def reset(self) -> None:
        """Break both sides at once (RST); nothing happens to a side that has ended."""
        reset(self._client)
        reset(self._server)

    async def _end(self, broken: bool) -> None:
        """Hand on what passed before the end; the client sees an RST if the end is no orderly one.

        The server gets what it was sent and an orderly end, so that a cut is about one frame.
        """
        if broken:
            reset(self._client)
        for pipe, writer in ((self._to_server, self._server), (self._to_client, self._client)):
            if writer.is_closing():
                continue
            with suppress(asyncio.TimeoutError, OSError):
                await asyncio.wait_for(pipe.flushed(), FLUSH_SECONDS)
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), FLUSH_SECONDS)

    async def _pump(self, reader: asyncio.StreamReader, look: Look, pipe: Pipe) -> bool:
        """Pass bytes on until they end; True if the connection has broken."""
        while data := await reader.read(READ_BYTES):
            passed = await look(data)
            await pipe.send(passed.data)
            if passed.cut:
                return True
        await pipe.flushed()
        return False


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection with an RST instead of an orderly end."""
    if writer.is_closing():
        return
    with suppress(OSError):
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    writer.transport.abort()
