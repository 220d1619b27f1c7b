"""Builds check endpoints on raw sockets, which can answer as no web framework does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from itertools import count

from chaos.workload.hostile_endpoints import HOSTILE_ENDPOINTS, serve_connection

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


def hostile_endpoint(name: str) -> AbstractAsyncContextManager[str]:
    """Serve a hostile endpoint that needs no true answer for the block; yield the check URL."""
    return raw_endpoint(partial(serve_connection, HOSTILE_ENDPOINTS[name], lambda *_: {}, count()))
