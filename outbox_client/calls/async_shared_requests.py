"""Concurrent calls of one event loop share requests."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from outbox_client.calls import shared_items
from outbox_client.calls.async_transport import AsyncTransport
from outbox_client.calls.protocol import Answer
from outbox_client.calls.request_queue import RequestQueue
from outbox_client.calls.retry import SHORTEST_ATTEMPT_SECONDS
from outbox_client.calls.shared_items import SEND_ALONE, Reply, SharedItem
from outbox_client.errors import OutboxError, ServiceUnreachable


@dataclass(slots=True, eq=False)
class AsyncCall:
    """One waiting call."""

    item: SharedItem
    deadline: float
    reply: asyncio.Future[Reply]


class AsyncSharedRequests:
    """Sends items of one operation over ``transport``, for any number of tasks of one loop.

    A request is a task of its own: a caller that is cancelled takes no other caller's answer away.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._queue: RequestQueue[AsyncCall] = RequestQueue()
        self._requests: set[asyncio.Task[Sequence[Reply]]] = set()

    def waiting(self) -> int:
        """Return how many calls wait for a request."""
        return len(self._queue)

    async def close(self) -> None:
        """Cancel the requests under way; their callers get ``ServiceUnreachable``."""
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def exchange(self, item: SharedItem, seconds: float) -> Answer:
        """Send ``item`` with the others that wait; return its own answer (``SharedRequests``)."""
        loop = asyncio.get_running_loop()
        call = AsyncCall(item, monotonic() + seconds, loop.create_future())
        self._queue.add(call)
        loop.call_soon(self._start)  # after all tasks that can go on now: they add their calls too
        too_late = loop.call_later(seconds, _answer_too_late, call)
        try:
            reply = await call.reply
        finally:
            too_late.cancel()
            self._queue.withdraw(call)
        if isinstance(reply, OutboxError):
            raise reply
        if reply is SEND_ALONE:
            left = max(call.deadline - monotonic(), SHORTEST_ATTEMPT_SECONDS)
            return await self._transport.exchange(item.alone(), left)
        return reply

    def _start(self) -> None:
        calls = self._queue.start_request()
        if calls:
            request = asyncio.create_task(self._replies(calls))
            self._requests.add(request)
            request.add_done_callback(lambda ended: self._finish(calls, ended))

    def _finish(self, calls: Sequence[AsyncCall], request: asyncio.Task[Sequence[Reply]]) -> None:
        self._requests.discard(request)
        self._queue.end_request()
        unanswered = shared_items.interrupted(len(calls))
        replies = unanswered if request.cancelled() else request.result()
        for call, reply in zip(calls, replies, strict=True):
            if not call.reply.done():
                call.reply.set_result(reply)
        request.get_loop().call_soon(self._start)  # after the callers, which may have more to send

    async def _replies(self, calls: Sequence[AsyncCall]) -> Sequence[Reply]:
        request = shared_items.shared_request([call.item for call in calls])
        left = max(calls[0].deadline - monotonic(), SHORTEST_ATTEMPT_SECONDS)
        try:
            return shared_items.read_shared(
                await self._transport.exchange(request, left), len(calls)
            )
        except OutboxError as error:
            return shared_items.one_error_each(error, len(calls))


def _answer_too_late(call: AsyncCall) -> None:
    if not call.reply.done():
        call.reply.set_result(ServiceUnreachable("the answer did not arrive in time"))
