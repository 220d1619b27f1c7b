"""The service on a real socket of this process, and raw clients.

The server runs in a thread of its own on uvloop, as in production.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn

from api.__main__ import server_config
from api.wiring import build
from outbox.settings.catalogue import Settings
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue
from tests.fixtures_plain_http import NO_TLS
from tests.integration.api.fixtures_service import GROUPS, TOPIC

LONG_TOPIC = "t" * 249
LIVENESS_SECONDS = 60
"""How long a test waits for what must happen at once; machines may be slow."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer as it came over the socket."""

    status: int
    headers: dict[str, str]
    """In small letters."""
    body: bytes
    head: str
    """As it came."""


class Wire:
    """A raw connection to the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send bytes; a connection that the server has closed is no error here."""
        self.writer.write(data)
        try:
            await self.writer.drain()
        except ConnectionError:
            return

    async def answer(self) -> Answer | None:
        """Read one answer; None once the connection has ended."""
        async with asyncio.timeout(LIVENESS_SECONDS):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            first, *lines = head.decode().split("\r\n")[:-2]
            headers = dict(line.lower().split(": ", 1) for line in lines)
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(int(first.split()[1]), headers, body, head.decode())

    async def statuses(self) -> list[int]:
        """Read answers until the connection ends; return their statuses."""
        found = []
        while (answer := await self.answer()) is not None:
            found.append(answer.status)
        return found

    async def ends(self) -> bool:
        """Wait until the server ends the connection."""
        return await self.statuses() == []


class Listener:
    """The listening service and its clients."""

    def __init__(self, port: int, client: httpx2.AsyncClient) -> None:
        self.port, self.client = port, client
        self._wires: list[Wire] = []

    async def wire(self, data: bytes = b"") -> Wire:
        """Open a raw connection and send the first bytes."""
        wire = Wire(*await asyncio.open_connection("127.0.0.1", self.port))
        self._wires.append(wire)
        if data:
            await wire.send(data)
        return wire

    async def put_group(self, name: str) -> None:
        """Register a group."""
        body = {"check_url": "http://127.0.0.1:8999/check"}
        answer = await self.client.put(f"{GROUPS}/{name}", json=body)
        assert answer.status_code in (200, 201), answer.text

    def close(self) -> None:
        """Close the raw connections."""
        for wire in self._wires:
            wire.writer.close()


@asynccontextmanager
async def listening(
    settings: Settings,
    *,
    headers: dict[str, str] | None = None,
    kafka_away: bool = False,
) -> AsyncIterator[Listener]:
    """Serve for the block; ``headers`` are sent by its client.

    ``kafka_away``: the service asks Kafka itself, which no settings of these tests reach.
    """
    known = MemoryTopicCatalogue(counts={TOPIC: 3, LONG_TOPIC: 1})
    app = build(settings, None if kafka_away else known, listens_on="127.0.0.1")
    with _served(app) as port:
        url = f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(
            base_url=url, timeout=60, headers=headers, verify=NO_TLS
        ) as client:
            listener = Listener(port, client)
            try:
                yield listener
            finally:
                listener.close()


@contextmanager
def _served(app: Any) -> Iterator[int]:
    server = uvicorn.Server(server_config(app))
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join(LIVENESS_SECONDS)
            assert not thread.is_alive()


def request(method: str, path: str, *headers: str, body: bytes = b"", length: bool = True) -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *headers]
    if body and length:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
