"""Builds a connection pooler as a client sees it: with a process id of the pooler itself."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from devservers.ports import LOOPBACK

HEAD: Final = struct.Struct(">cI")
KEY_DATA: Final = b"K"
INVENTED_PID: Final = struct.pack(">I", 4_000_000)
"""Above every process id of a Linux with default settings."""


@asynccontextmanager
async def pooled(database_url: str) -> AsyncIterator[str]:
    """Run a proxy that answers log-ins as a pooler does; yield the URL that leads through it."""
    parts = urlsplit(database_url)
    upstream = parts.port

    async def serve(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, questions = await asyncio.open_connection(LOOPBACK, upstream)
        passing = [_pass(client, questions), _pass_answers(server, answers)]
        await asyncio.gather(*passing)

    proxy = await asyncio.start_server(serve, LOOPBACK, 0)
    port = proxy.sockets[0].getsockname()[1]
    netloc = f"{parts.username}:{parts.password}@{LOOPBACK}:{port}"
    try:
        yield parts._replace(netloc=netloc, query="sslmode=disable&gssencmode=disable").geturl()
    finally:
        proxy.close()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()


async def _pass_answers(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await source.readexactly(HEAD.size)
            kind, length = HEAD.unpack(head)
            body = await source.readexactly(length - 4)
            target.write(head + (INVENTED_PID + body[4:] if kind == KEY_DATA else body))
            await target.drain()
    target.close()
