"""``Transport`` for asyncio."""

import asyncio
import ssl

import httpcore2

from outbox_client.calls.protocol import Answer, Request
from outbox_client.calls.transport import (
    AnswerBody,
    Service,
    one_kind_of_error,
    pool_options,
)
from outbox_client.errors import ServiceUnreachable


class AsyncTransport:
    """Sends requests to one service; may be shared by any number of tasks of one event loop."""

    def __init__(
        self, url: str, api_key: str | None, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._service = Service(url, api_key)
        options = pool_options(ssl_context)
        self._pool = httpcore2.AsyncConnectionPool(**options)
        self._pool_of_waits = httpcore2.AsyncConnectionPool(**options)
        self._is_closed = False

    async def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        await self._pool.aclose()
        await self._pool_of_waits.aclose()

    async def exchange(self, request: Request, timeout_seconds: float) -> Answer:
        """Send ``request`` once; raises as ``Transport.exchange``."""
        if self._is_closed:
            raise ServiceUnreachable("the producer is closed")
        body = AnswerBody(timeout_seconds)
        options = self._service.options(request, timeout_seconds)
        pool = self._pool_of_waits if request.waits else self._pool
        try:
            with one_kind_of_error():
                async with (
                    asyncio.timeout(timeout_seconds),
                    pool.stream("POST", **options) as response,
                ):
                    async for chunk in response.aiter_stream():
                        body.add(chunk)
        except TimeoutError:
            raise ServiceUnreachable("the answer did not end in time") from None
        return body.answer(response)
