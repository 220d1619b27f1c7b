"""One relayed connection: two pipes and an inspector."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from chaos.proxies.link_faults import Direction, LinkFaults
from chaos.proxies.pipe import Pipe

READ_BYTES: Final = 1 << 16
FLUSH_SECONDS: Final = 1.0
"""How long a cut waits for the bytes that passed before it."""
AT_ONCE: Final = struct.pack("ii", 1, 0)


class Passed(NamedTuple):
    """The bytes that may pass, and whether the connection is cut after them."""

    data: bytes
    cut: bool = False


Look = Callable[[bytes], Awaitable[Passed]]


class Inspector(Protocol):
    """Inspects both directions of one connection."""

    async def up(self, data: bytes) -> Passed:
        """Return the client's bytes that may pass now."""

    async def down(self, data: bytes) -> Passed:
        """Return the server's bytes that may pass now."""


class PassThrough:
    """Passes everything."""

    async def up(self, data: bytes) -> Passed:
        """Let it pass."""
        return Passed(data)

    async def down(self, data: bytes) -> Passed:
        """Let it pass."""
        return Passed(data)


class RelayedConnection:
    """The client's connection and the proxy's connection to the server."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        inspector: Inspector,
        faults: Callable[[], LinkFaults],
        chance: random.Random,
        counts: Counter[str],
    ) -> None:
        self._counts = counts
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
        """Reset both sides (RST), except a side that has ended."""
        reset(self._client)
        reset(self._server)

    async def _end(self, broken: bool) -> None:
        """Deliver the bytes that passed before the end; the client gets an RST after a cut.

        The server gets its bytes and an orderly end, so that a cut affects only one frame.
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
        """Relay bytes until their end; return True if a rule cut the connection."""
        while data := await reader.read(READ_BYTES):
            self._counts["bytes"] += len(data)
            passed = await look(data)
            await pipe.send(passed.data)
            if passed.cut:
                return True
        await pipe.flushed()
        return False


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with an RST instead of an orderly end."""
    if writer.is_closing():
        return
    with suppress(OSError):
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    writer.transport.abort()
