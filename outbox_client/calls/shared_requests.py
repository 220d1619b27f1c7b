"""Concurrent calls of threads share requests; one of them sends, the others wait.

There is no thread of our own: the thread of one of the calls in a request sends it. Callers that
were answered together often come again together. So the first of them lets the others catch up, and
the last one sends. A single caller never waits.

Only one thread runs at a time, so a thread that is woken too early is woken twice. Those that were
answered are therefore woken in turn, each by another one that is already awake.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

from outbox_client.calls import shared_items
from outbox_client.calls.linger import Linger
from outbox_client.calls.protocol import BATCH_MAX_ITEMS, Answer
from outbox_client.calls.request_queue import RequestQueue
from outbox_client.calls.retry import SHORTEST_ATTEMPT_SECONDS
from outbox_client.calls.shared_items import SEND_ALONE, Reply, SharedItem
from outbox_client.calls.transport import Transport
from outbox_client.errors import OutboxError, ServiceUnreachable

WAKES: Final = 2
"""How many threads each one wakes. With one, the last of many would wait for every one before it,
also for those that the operating system has just paused."""

LOOKS: Final = 5
"""How often a call looks whether others come before it starts a request."""


@dataclass(slots=True, eq=False)
class Call:
    """One waiting call. ``woken`` is locked until it is answered, or has a request to send."""

    item: SharedItem
    deadline: float
    woken: Lock = field(default_factory=Lock)
    request: "Sequence[Call] | None" = None
    reply: Reply | None = None
    gave_up: bool = False
    wakes: "Sequence[Call]" = ()
    """The calls whose threads this one's wakes next."""

    def __post_init__(self) -> None:
        self.woken.acquire()

    def seconds_left(self) -> float:
        """Return the time until the deadline, but enough for an attempt."""
        return max(self.deadline - monotonic(), SHORTEST_ATTEMPT_SECONDS)

    def wake_others(self) -> None:
        """Wake those who depend on this call, once."""
        others, self.wakes = self.wakes, ()
        wake(others)


class SharedRequests:
    """Sends items of one operation over ``transport``, for any number of threads."""

    def __init__(self, transport: Transport, linger: Linger) -> None:
        self._transport = transport
        self._linger = linger
        self._lock = linger.lock
        self._queue: RequestQueue[Call] = RequestQueue()
        self._collector: Call | None = None
        """The call that lets others catch up and then starts a request."""

    def waiting(self) -> int:
        """Return how many calls wait for a request."""
        return len(self._queue)

    def exchange(self, item: SharedItem, seconds: float) -> Answer:
        """Send ``item`` with the others that wait; return its own answer.

        Raises as ``Transport.exchange``. An item that was refused only because of the request as a
        whole is sent again, alone.
        """
        call = Call(item, monotonic() + seconds)
        try:
            self._join(call)
            self._wait(call)
            if call.request is not None:
                self._send(call.request, call)
        except BaseException:
            self._leave(call)
            if call.request is not None:
                self._finish(call.request, None, call, monotonic())
            raise
        if call.reply is None:
            raise ServiceUnreachable("the answer did not arrive in time")
        if isinstance(call.reply, OutboxError):
            raise call.reply
        if call.reply is SEND_ALONE:
            return self._transport.exchange(item.alone(), call.seconds_left())
        return call.reply

    def _join(self, call: Call) -> None:
        """Wait for the next request; start it if no other is expected, or collect its calls."""
        with self._lock:
            self._queue.add(call)
            self._linger.came(monotonic())
            senders: list[Call] = []
            waiting = len(self._queue)
            if waiting >= BATCH_MAX_ITEMS or not self._linger.lingers(waiting):
                senders = self._start_requests(call)
            elif self._collector is None and self._queue.may_start(monotonic()):
                self._collector = call
        wake(senders)

    def _start_requests(self, running: Call | None = None) -> list[Call]:
        """Start what may start, under the lock; return the calls that have to send.

        That is the call whose thread runs, if it is among them: no thread has to be woken then.
        Else it is the last one, which has most time left.
        """
        senders: list[Call] = []
        while calls := self._queue.start_request(monotonic()):
            self._collector = None
            self._linger.sent(len(calls))
            senders.append(running if running and running in calls else calls[-1])
            senders[-1].request = calls
        return senders

    def _wait(self, call: Call) -> None:
        """Wait until the call is answered, or has a request to send, or its time is over."""
        woken = self._collector is call and self._collect(call)
        if woken or call.woken.acquire(timeout=call.seconds_left()):
            call.wake_others()
        else:
            self._leave(call)

    def _collect(self, call: Call) -> bool:
        """Start a request once no call has come for a pause; return True if woken before that."""
        waiting = len(self._queue)
        for _ in range(LOOKS):
            if call.woken.acquire(timeout=self._linger.pause_seconds):
                return True
            before, waiting = waiting, len(self._queue)
            if waiting == before:
                break
        with self._lock:
            senders: list[Call] = []
            if self._collector is call:
                self._linger.expect_none()
                self._collector = None
                senders = self._start_requests(call)
        wake(senders)
        return False

    def _leave(self, call: Call) -> None:
        """Wait no longer; no caller waits for what this call would have done."""
        with self._lock:
            call.gave_up = True
            self._queue.withdraw(call)
            senders: list[Call] = []
            if self._collector is call:
                self._collector = None
                senders = self._start_requests()
        wake(senders)
        call.wake_others()

    def _send(self, calls: Sequence[Call], sender: Call) -> None:
        began = monotonic()
        replies = self._replies([call.item for call in calls], sender.seconds_left())
        self._finish(calls, replies, sender, began)

    def _replies(self, items: Sequence[SharedItem], seconds: float) -> Sequence[Reply]:
        try:
            answer = self._transport.exchange(shared_items.shared_request(items), seconds)
            return shared_items.read_shared(answer, len(items))
        except OutboxError as error:
            return shared_items.one_error_each(error, len(items))

    def _finish(
        self, calls: Sequence[Call], replies: Sequence[Reply] | None, sender: Call, began: float
    ) -> None:
        """Answer the calls of a request; without replies it was interrupted.

        An interrupt in the midst of it lets it be repeated.
        """
        replies = replies or shared_items.interrupted(len(calls))
        with self._lock:
            if self._queue.end_request(calls):
                self._linger.answered(len(calls), began, monotonic())
            for call, reply in zip(calls, replies, strict=True):
                call.reply = call.reply or reply
            senders = [] if self._collector else self._start_requests()
            others = [each for each in calls if each is not sender and not each.gave_up]
            first = in_turn([*senders, *others])
            sender.request = None
        wake(first)


def in_turn(calls: Sequence[Call]) -> Sequence[Call]:
    """Let each of these calls wake some of those behind it; return those to wake first."""
    for place, call in enumerate(calls, start=1):
        call.wakes = calls[place * WAKES : (place + 1) * WAKES]
    return calls[:WAKES]


def wake(calls: Sequence[Call]) -> None:
    """Let the threads of these calls go on."""
    for call in calls:
        call.woken.release()
