"""One run of a public route answers everybody who asks meanwhile.

So probes cost the same whether one caller asks or a thousand strangers do, and nobody is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from api.http.exchange import AsgiScope, Receive, Send

App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
AsgiMessage = MutableMapping[str, Any]


class SharedAnswers:
    """The running answers, by path."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._running: dict[str, asyncio.Task[list[AsgiMessage]]] = {}

    async def serve(self, scope: AsgiScope, send: Send) -> None:
        """Answer a request that has neither body nor query; a problem names its first caller."""
        path = scope["path"]
        task = self._running.get(path)
        if task is None:
            task = self._running[path] = asyncio.create_task(self._run(scope))
            task.add_done_callback(lambda done: self._finished(path, done))
        for message in await asyncio.shield(task):
            await send(dict(message))

    def _finished(self, path: str, task: asyncio.Task[list[AsgiMessage]]) -> None:
        del self._running[path]
        if not task.cancelled():
            task.exception()  # everybody who asked may be gone

    async def _run(self, scope: AsgiScope) -> list[AsgiMessage]:
        sent: list[AsgiMessage] = []

        async def keep(message: AsgiMessage) -> None:
            sent.append(message)

        await self._app(scope, _no_body, keep)
        return sent


async def _no_body() -> AsgiMessage:
    return {"type": "http.request", "body": b"", "more_body": False}
