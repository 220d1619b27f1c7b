"""Lets few shards publish at a time, so that the waiting shards collect larger batches.

A Kafka transaction costs nearly the same for one record as for a thousand, so what counts is how
many there are in a second. Shards take turns: their number does not grow with the number of shards
that have work. A shard that finds a free slot goes at once, and no slot rests while a shard waits.

While one shard publishes, the brokers write the markers of the shard before. A producer that began
again without this pause would wait for them 20 ms, which is how long the library backs off.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

AT_ONCE: Final = 1
PATIENCE_SECONDS: Final = 0.2
"""The longest wait for a slot: a shard that waits for Kafka must not delay the others."""

Published = TypeVar("Published")


class PublishSlots:
    """Slots for publishing, given out in the order of the requests."""

    def __init__(self, at_once: int = AT_ONCE, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._free = at_once
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._holders: set[int] = set()
        """The threads that have a slot."""

    def take(self, publish: Callable[[], Published]) -> Published:
        """Publish in a slot, or without one after the longest wait; return the result."""
        held = self._take()
        if held:
            self._holders.add(threading.get_ident())
        try:
            return publish()
        finally:
            if held:
                self.give_back()

    def give_back(self) -> None:
        """Hand the slot of this thread on before its work is over; without one, do nothing."""
        with self._lock:
            if threading.get_ident() not in self._holders:
                return
            self._holders.remove(threading.get_ident())
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

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
