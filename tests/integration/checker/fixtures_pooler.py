"""Builds a connection pooler as a client sees it: with a process id of the pooler itself."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from devservers.loopback import LOOPBACK

HEAD: Final = struct.Struct(">cI")
LENGTH: Final = struct.Struct(">I")
KEY_DATA: Final = b"K"
INVENTED_PID: Final = struct.pack(">I", 4_000_000)
"""Above every process id of a Linux with default settings."""


@asynccontextmanager
async def pooled(database_url: str, *, ignores_options: bool = False) -> AsyncIterator[str]:
    """Run a proxy that answers log-ins as a pooler does; yield the URL that leads through it.

    Some leave the settings of a session out: PgBouncer with ``ignore_startup_parameters=options``.
    """
    parts = urlsplit(database_url)
    upstream = parts.port

    links = set[asyncio.Task[None]]()

    async def serve(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        if link := asyncio.current_task():
            links.add(link)
        server, questions = await asyncio.open_connection(LOOPBACK, upstream)
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError):
            questions.write(await _first_message(client, ignores_options=ignores_options))
            await asyncio.gather(_pass(client, questions), _pass_answers(server, answers))
        await _close(questions, answers)

    proxy = await asyncio.start_server(serve, LOOPBACK, 0)
    port = proxy.sockets[0].getsockname()[1]
    netloc = f"{parts.username}:{parts.password}@{LOOPBACK}:{port}"
    try:
        yield parts._replace(netloc=netloc, query="sslmode=disable&gssencmode=disable").geturl()
    finally:
        proxy.close()
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)


async def _close(*writers: asyncio.StreamWriter) -> None:
    """Close both ends of a link before the loop ends."""
    for writer in writers:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _first_message(client: asyncio.StreamReader, *, ignores_options: bool) -> bytes:
    """Return what a client sends first: the version of the protocol, then names and values."""
    (length,) = LENGTH.unpack(await client.readexactly(LENGTH.size))
    version, texts = await client.readexactly(4), await client.readexactly(length - 8)
    words = texts.removesuffix(b"\0\0").split(b"\0")
    pairs = zip(words[::2], words[1::2], strict=True)
    kept = [b"\0".join(pair) for pair in pairs if not (ignores_options and pair[0] == b"options")]
    body = version + b"\0".join(kept) + b"\0\0"
    return LENGTH.pack(len(body) + LENGTH.size) + body


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
