"""``Transport`` for asyncio."""

import asyncio

import httpx2

from outbox_client.calls.protocol import Answer, Request
from outbox_client.calls.transport import (
    AnswerBody,
    client_options,
    one_kind_of_error,
    request_options,
)
from outbox_client.errors import ServiceUnreachable


class AsyncTransport:
    """Sends requests to one service; may be shared by any number of tasks of one event loop."""

    def __init__(self, url: str, api_key: str | None) -> None:
        self._http = httpx2.AsyncClient(**client_options(url, api_key))

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def exchange(self, request: Request, timeout_seconds: float) -> Answer:
        """Send ``request`` once; raises as ``Transport.exchange``."""
        if self._http.is_closed:
            raise ServiceUnreachable("the producer is closed")
        body = AnswerBody(timeout_seconds)
        options = request_options(request, timeout_seconds)
        try:
            with one_kind_of_error():
                async with (
                    asyncio.timeout(timeout_seconds),
                    self._http.stream("POST", **options) as response,
                ):
                    async for chunk in response.aiter_raw():
                        body.add(chunk)
        except TimeoutError:
            raise ServiceUnreachable("the answer did not end in time") from None
        return body.answer(response)
