"""Concurrent calls of one event loop share requests."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
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
        self._starts_soon = False
        self._open: dict[AsyncCall, None] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = inf

    def waiting(self) -> int:
        """Return how many calls wait for a request."""
        return len(self._queue)

    async def close(self) -> None:
        """Cancel the requests under way; their callers get ``ServiceUnreachable``."""
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        if self._alarm is not None:
            self._alarm.cancel()

    async def exchange(self, item: SharedItem, seconds: float) -> Answer:
        """Send ``item`` with the others that wait; return its own answer (``SharedRequests``)."""
        loop = asyncio.get_running_loop()
        call = AsyncCall(item, monotonic() + seconds, loop.create_future())
        self._queue.add(call)
        self._start_soon(loop)
        self._open[call] = None
        self._set_alarm(loop, call.deadline)
        try:
            reply = await call.reply
        finally:
            del self._open[call]
            self._queue.withdraw(call)
        if isinstance(reply, OutboxError):
            raise reply
        if reply is SEND_ALONE:
            left = max(call.deadline - monotonic(), SHORTEST_ATTEMPT_SECONDS)
            return await self._transport.exchange(item.alone(), left)
        return reply

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        """Set the one timer of all calls to a deadline, unless it is set to an earlier one."""
        if deadline >= self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = loop.call_later(deadline - monotonic(), self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer the calls whose time is over."""
        now, self._alarm_at = monotonic(), inf
        for call in self._open:
            if call.deadline > now:
                self._set_alarm(loop, call.deadline)
            elif not call.reply.done():
                call.reply.set_result(ServiceUnreachable("the answer did not arrive in time"))

    def _start_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a request after all tasks that can go on now: they add their calls too."""
        if not self._starts_soon:
            self._starts_soon = True
            loop.call_soon(self._start)

    def _start(self) -> None:
        self._starts_soon = False
        calls = self._queue.start_request(monotonic())
        if calls:
            request = asyncio.create_task(self._replies(calls))
            self._requests.add(request)
            request.add_done_callback(lambda ended: self._finish(calls, ended))

    def _finish(self, calls: Sequence[AsyncCall], request: asyncio.Task[Sequence[Reply]]) -> None:
        self._requests.discard(request)
        self._queue.end_request(calls)
        error = None if request.cancelled() else request.exception()
        if error is not None and not calls[0].reply.done():
            calls[0].reply.set_exception(error)  # unexpected: one caller raises it
        whole = error is None and not request.cancelled()
        replies = request.result() if whole else shared_items.interrupted(len(calls))
        for call, reply in zip(calls, replies, strict=True):
            if not call.reply.done():
                call.reply.set_result(reply)
        self._start_soon(request.get_loop())

    async def _replies(self, calls: Sequence[AsyncCall]) -> Sequence[Reply]:
        request = shared_items.shared_request([call.item for call in calls])
        last = max(call.deadline for call in calls)
        left = max(last - monotonic(), SHORTEST_ATTEMPT_SECONDS)
        try:
            return shared_items.read_shared(
                await self._transport.exchange(request, left), len(calls)
            )
        except OutboxError as error:
            return shared_items.one_error_each(error, len(calls))
