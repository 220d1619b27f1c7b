"""The two ways into the service in this process: ASGI messages, and the server's own protocol.

On the second one, which is that of `outbox-api`, the server writes a whole answer in one step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import httpx2
from uvicorn.server import ServerState

from api.__main__ import server_config
from api.guard import Guard
from api.http.connection.open_connections import ConnectionLimits
from tests.fixtures_plain_http import NO_TLS

WayIn = Callable[[Guard], AbstractAsyncContextManager[dict[str, Any]]]


@asynccontextmanager
async def by_asgi(app: Guard) -> AsyncIterator[dict[str, Any]]:
    """Yield the options of a client that calls the application."""
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    yield {"transport": transport, "base_url": "http://localhost"}


@asynccontextmanager
async def by_socket(app: Guard) -> AsyncIterator[dict[str, Any]]:
    """Serve on a socket of this event loop; yield the options of a client."""
    config, state = server_config(app, ConnectionLimits()), ServerState()
    config.load()
    protocol: Any = config.http_protocol_class
    server = await asyncio.get_running_loop().create_server(
        lambda: protocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    try:
        port = server.sockets[0].getsockname()[1]
        yield {"base_url": f"http://127.0.0.1:{port}", "verify": NO_TLS}
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        while state.tasks:
            await asyncio.wait(state.tasks)


WAYS_IN: Final[dict[str, WayIn]] = {"socket": by_socket, "asgi": by_asgi}
