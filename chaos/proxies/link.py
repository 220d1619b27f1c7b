"""One link: it listens in place of a server, relays to it and performs network faults."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from contextlib import suppress
from typing import Final

from chaos.proxies.connection import Inspector, PassThrough, RelayedConnection, reset
from chaos.proxies.link_faults import NONE, Accept, LinkFaults

LOOPBACK: Final = "127.0.0.1"
CONNECT_SECONDS: Final = 5.0
BACKLOG: Final = 512


class Link:
    """Relays bytes; a subclass inspects each connection with its ``inspector``."""

    def __init__(self, name: str, upstream: int, seed: int) -> None:
        """Prepare a link to a port of this machine."""
        self.name = name
        self.upstream = upstream
        self.faults = NONE
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(f"{seed}/{name}")
        self._port = _reserved(0)
        self._server: asyncio.Server | None = None
        self._connections: set[RelayedConnection] = set()
        self._silent: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on; it stays reserved while connections are refused."""
        return int(self._port.getsockname()[1])

    async def open(self) -> None:
        """Start listening."""
        listening = _reserved(self.port)
        self._server = await asyncio.start_server(self._accept, sock=listening, backlog=BACKLOG)

    async def close(self) -> None:
        """Reset all connections and stop listening."""
        await self._refuse()
        self.reset()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._port.close()

    async def set(self, faults: LinkFaults) -> None:
        """Set the network faults from now on."""
        was, self.faults = self.faults, faults
        if faults.accept is Accept.REFUSE:
            await self._refuse()
        elif self._server is None:
            await self.open()
        if was.accept is Accept.SILENT:
            self._forget_silent()

    def reset(self) -> int:
        """Reset all present connections (RST); return their number."""
        broken = len(self._connections)
        for connection in tuple(self._connections):
            connection.reset()
        self._forget_silent()
        return broken

    def heal(self) -> None:
        """Disarm the rules of a subclass."""

    def inspector(self) -> Inspector:
        """Return the inspector of a new connection."""
        return PassThrough()

    async def _refuse(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _forget_silent(self) -> None:
        while self._silent:
            reset(self._silent.pop())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.counts["connections"] += 1
        match self.faults.accept:
            case Accept.SILENT:
                self._silent.add(writer)
            case Accept.RELAY:
                task = asyncio.ensure_future(self._relay(reader, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case _:
                reset(writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            opening = asyncio.open_connection(LOOPBACK, self.upstream)
            server = await asyncio.wait_for(opening, CONNECT_SECONDS)
        except (TimeoutError, OSError):
            reset(writer)
            return
        connection = RelayedConnection(
            (reader, writer),
            server,
            self.inspector(),
            lambda: self.faults,
            self._chance,
            self.counts,
        )
        self._connections.add(connection)
        try:
            with suppress(OSError):
                await connection.relay()
        finally:
            self._connections.discard(connection)


def _reserved(port: int) -> socket.socket:
    """Return a socket that reserves a port without listening: connections are refused."""
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    own.bind((LOOPBACK, port))
    return own
