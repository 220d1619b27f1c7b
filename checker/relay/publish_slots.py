"""Lets a few shards publish at a time, so that the waiting shards collect larger batches.

A Kafka transaction costs nearly the same for one record as for a thousand. Sixteen shards that
publish small batches at once would overload the machine; a shard that waits for a slot reads more.
After a small batch a slot pauses for as long as the batch took, which leaves half the time to other
shards. A large batch, or one message after a quiet time, has no pause.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from outbox.clock import Clock

AT_ONCE: Final = 2
SMALL_BATCH: Final = 256
REST_SECONDS: Final = 0.03
"""The longest pause after a small batch."""
PATIENCE_SECONDS: Final = 0.2
"""The longest wait for a slot: a shard that waits for Kafka must not delay the others."""


class PublishRound(Protocol):
    """The result of a round, as the slots need it."""

    @property
    def published(self) -> int:
        """The number of published records."""


Published = TypeVar("Published", bound=PublishRound)


class PublishSlots:
    """Slots for publishing, given out in the order of the requests."""

    def __init__(
        self, clock: Clock, at_once: int = AT_ONCE, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._clock = clock
        self._idle = threading.Event()
        self._free = at_once
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    def take(self, publish: Callable[[], Published]) -> Published:
        """Publish in a slot, or without one after the longest wait; return the result."""
        held = self._take()
        try:
            began = self._clock.monotonic()
            done = publish()
            if held and 0 < done.published < SMALL_BATCH:
                self._idle.wait(min(self._clock.monotonic() - began, REST_SECONDS))
            return done
        finally:
            if held:
                self._hand_on()

    def _take(self) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            called = threading.Event()
            self._waiting.append(called)
        if called.wait(self._patience):
            return True
        with self._lock:
            if called.is_set():
                return True
            self._waiting.remove(called)
        return False

    def _hand_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
