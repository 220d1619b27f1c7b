"""Check endpoints that misbehave below HTTP: raw sockets that answer as no web framework would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
FOREVER = 3600


@asynccontextmanager
async def raw_endpoint(handler: Handler) -> AsyncIterator[str]:
    """Serve raw connections for the block; yield the check URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
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


async def silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    """Accept and say nothing."""
    await asyncio.sleep(FOREVER)


async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer and send a byte now and then."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
    )
    while True:
        writer.write(b"{")
        await writer.drain()
        await asyncio.sleep(0.1)


async def endless_headers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"a" * 1000 + b"\r\n")
        await writer.drain()


async def endless_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Break the connection after the request."""
    writer.transport.abort()


async def not_http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak another protocol."""
    writer.write(b"220 mail.example ESMTP COMMIT\r\n")
    await writer.drain()


async def cut_short(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End before the announced length."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
        b'{"decision":"COMMIT"'
    )
    await writer.drain()
