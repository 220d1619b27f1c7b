"""Concurrent calls of threads share requests; the first of them sends, the others wait.

There is no thread of our own: the thread whose call comes first in a request sends it, and when
its answer has come, wakes the thread that sends the next. Callers that were answered together often
come again together, so the first of them lets the others catch up before it sends. A caller without
company never waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

from outbox_client.calls import shared_items
from outbox_client.calls.protocol import BATCH_MAX_ITEMS, Answer
from outbox_client.calls.request_queue import RequestQueue
from outbox_client.calls.retry import SHORTEST_ATTEMPT_SECONDS
from outbox_client.calls.shared_items import SEND_ALONE, Reply, SharedItem
from outbox_client.calls.transport import Transport
from outbox_client.errors import OutboxError, ServiceUnreachable

CATCH_UP: Final = 0.2
"""Part of the last request's duration in which nobody must have come before the next one starts."""

CATCH_UP_MAX_SECONDS: Final = 0.005


@dataclass(slots=True, eq=False)
class Call:
    """One waiting call. ``woken`` is locked until it is answered, or has a request to send."""

    item: SharedItem
    deadline: float
    woken: Lock = field(default_factory=Lock)
    request: "Sequence[Call] | None" = None
    reply: Reply | None = None

    def __post_init__(self) -> None:
        self.woken.acquire()

    def seconds_left(self) -> float:
        """Return the time until the deadline, but enough for an attempt."""
        return max(self.deadline - monotonic(), SHORTEST_ATTEMPT_SECONDS)


class SharedRequests:
    """Sends items of one operation over ``transport``, for any number of threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = Lock()
        self._queue: RequestQueue[Call] = RequestQueue()
        self._catching_up = False
        self._last_size = 0
        self._last_seconds = 0.0

    def waiting(self) -> int:
        """Return how many calls wait for a request."""
        return len(self._queue)

    def exchange(self, item: SharedItem, seconds: float) -> Answer:
        """Send ``item`` with the others that wait; return its own answer.

        Raises as ``Transport.exchange``. An item that was refused only because of the request as a
        whole is sent again, alone.
        """
        call = Call(item, monotonic() + seconds)
        with self._lock:
            self._queue.add(call)
            first = self._queue.may_start() and not self._catching_up
            self._catching_up |= first
        try:
            self._start(call) if first else self._wait(call)
        except BaseException:
            self._leave(call)
            raise
        if call.request is not None:
            self._send(call.request, call.seconds_left())
        if call.reply is None:
            raise ServiceUnreachable("the answer did not arrive in time")
        if isinstance(call.reply, OutboxError):
            raise call.reply
        if call.reply is SEND_ALONE:
            return self._transport.exchange(item.alone(), call.seconds_left())
        return call.reply

    def _start(self, call: Call) -> None:
        """Start a request as soon as no more callers of the last one come."""
        try:
            if self._last_size > 1:
                self._let_others_catch_up(call)
        finally:
            with self._lock:
                self._catching_up = False
                call.request = self._queue.start_request()
                senders = self._start_requests()
            wake(senders)

    def _let_others_catch_up(self, call: Call) -> None:
        pause = min(self._last_seconds * CATCH_UP, CATCH_UP_MAX_SECONDS)
        came = 0
        while came < len(self._queue) < BATCH_MAX_ITEMS:
            came = len(self._queue)
            call.woken.acquire(timeout=pause)  # nobody wakes it: it is in no request yet

    def _start_requests(self) -> list[Call]:
        """Start what may start, under the lock; return the calls that have to send."""
        senders: list[Call] = []
        while not self._catching_up and (calls := self._queue.start_request()):
            calls[0].request = calls
            senders.append(calls[0])
        return senders

    def _wait(self, call: Call) -> None:
        if not call.woken.acquire(timeout=call.seconds_left()):
            with self._lock:
                self._queue.withdraw(call)

    def _leave(self, call: Call) -> None:
        """Give up a wait; a request that this call was about to send fails for the others."""
        with self._lock:
            self._queue.withdraw(call)
        if call.request is not None:
            self._finish(call.request, shared_items.interrupted(len(call.request)))

    def _send(self, calls: Sequence[Call], seconds: float) -> None:
        replies: Sequence[Reply] = shared_items.interrupted(len(calls))
        began = monotonic()
        try:
            replies = self._replies([call.item for call in calls], seconds)
        finally:
            self._last_size, self._last_seconds = len(calls), monotonic() - began
            self._finish(calls, replies)

    def _replies(self, items: Sequence[SharedItem], seconds: float) -> Sequence[Reply]:
        try:
            answer = self._transport.exchange(shared_items.shared_request(items), seconds)
            return shared_items.read_shared(answer, len(items))
        except OutboxError as error:
            return shared_items.one_error_each(error, len(items))

    def _finish(self, calls: Sequence[Call], replies: Sequence[Reply]) -> None:
        with self._lock:
            for call, reply in zip(calls, replies, strict=True):
                call.request, call.reply = None, reply
            self._queue.end_request()
            senders = self._start_requests()
        wake([*senders, *calls[1:]])


def wake(calls: Sequence[Call]) -> None:
    """Let the threads of these calls go on."""
    for call in calls:
        call.woken.release()
