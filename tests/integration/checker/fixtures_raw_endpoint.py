"""Builds check endpoints on raw sockets, which can answer as no web framework does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_endpoint(handler: Handler) -> AsyncIterator[str]:
    """Serve raw connections for the block; yield the check URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/check"
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def answer_of(message_id: str, decision: str) -> bytes:
    """Return a complete answer to a single check."""
    body = json.dumps({"message_id": message_id, "decision": decision}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def _silent(_: str, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def _drip(message_id: str, writer: asyncio.StreamWriter) -> None:
    for byte in answer_of(message_id, "COMMIT"):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1)


async def _endless_headers(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"a" * 1000 + b"\r\n")
        await writer.drain()


async def _big_body(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


async def _reset(_: str, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def _not_http(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP COMMIT\r\n")


async def _cut_short(message_id: str, writer: asyncio.StreamWriter) -> None:
    writer.write(answer_of(message_id, "COMMIT")[:-5])


HOSTILE: Final[Mapping[str, Callable[[str, asyncio.StreamWriter], Awaitable[None]]]] = {
    "silent": _silent,
    "drip": _drip,
    "endless_headers": _endless_headers,
    "big_body": _big_body,
    "reset": _reset,
    "not_http": _not_http,
    "cut_short": _cut_short,
}
"""What an endpoint does that never completes one valid answer."""


def hostile_endpoint(name: str) -> AbstractAsyncContextManager[str]:
    """Serve a hostile endpoint for the block; yield the check URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = head.partition("content-length: ")[2].partition("\r\n")[0]
        check: dict[str, Any] = json.loads(await reader.readexactly(int(length)))
        await HOSTILE[name](check["data"]["message_id"], writer)
        await writer.drain()

    return raw_endpoint(serve)
