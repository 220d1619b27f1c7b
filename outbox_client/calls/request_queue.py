"""Items that wait for a shared request, without input or output and without locks."""

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from outbox_client.calls.protocol import BATCH_MAX_BYTES, BATCH_MAX_ITEMS
from outbox_client.calls.shared_items import SharedItem

REQUESTS_UNDER_WAY: Final = 2
"""Requests of one operation at a time. With one, the next batch is read only after the answer to
the last was parsed; more make smaller batches, so each message costs more."""


class Waiting(Protocol):
    """A call that waits for its turn."""

    @property
    def item(self) -> SharedItem:
        """What the call sends."""
        ...

    @property
    def deadline(self) -> float:
        """When the call ends, answered or not."""
        ...


Call = TypeVar("Call", bound=Waiting)


class RequestQueue(Generic[Call]):
    """First come, first served; a request takes all that wait, up to the limits of a batch.

    While no request may start, calls wait; as soon as a request ends, all of them are sent. If
    whoever sent a request was stopped and cannot say so, it counts as ended when its calls end.
    """

    def __init__(self, most_requests: int = REQUESTS_UNDER_WAY) -> None:
        self._most_requests = most_requests
        self._under_way: dict[Call, float] = {}  # the first call of each request, and its end
        self._waiting: dict[Call, None] = {}  # in order, and any of them may leave

    def __len__(self) -> int:
        """Return how many calls wait for a request."""
        return len(self._waiting)

    def add(self, call: Call) -> None:
        """Let a call wait for the next request."""
        self._waiting[call] = None

    def withdraw(self, call: Call) -> bool:
        """Remove a call that still waits; False if a request has taken it."""
        return call in self._waiting and self._waiting.pop(call) is None

    def may_start(self, now: float) -> bool:
        """Return whether a request may start now."""
        if len(self._under_way) >= self._most_requests:
            self._under_way = {call: end for call, end in self._under_way.items() if end > now}
        return len(self._under_way) < self._most_requests

    def start_request(self, now: float) -> list[Call]:
        """Start a request and return its calls; nothing if none waits or none may start."""
        if not self._waiting or not self.may_start(now):
            return []
        calls: list[Call] = []
        size = messages = 0
        for call in self._waiting:
            size += len(call.item.body) + 1
            messages += call.item.messages
            if calls and (size > BATCH_MAX_BYTES or messages > BATCH_MAX_ITEMS):
                break
            calls.append(call)
        for call in calls:
            del self._waiting[call]
        self._under_way[calls[0]] = max(call.deadline for call in calls)
        return calls

    def end_request(self, calls: Sequence[Call]) -> bool:
        """End the request of these calls, answered or not; False if it has ended before."""
        return self._under_way.pop(calls[0], None) is not None
