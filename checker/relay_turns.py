"""Lets a few shards at a time publish, in turn, so that those that wait gather larger batches.

A Kafka transaction costs nearly the same for one record as for a thousand. Sixteen shards that each
hurry with what little they have would burn the machine; a shard that waits for its turn reads more.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

AT_ONCE: Final = 2
PATIENCE_SECONDS: Final = 0.2
"""Longer than this nobody waits: a shard that is stuck with Kafka must not hold up the others."""


class RelayTurns:
    """Turns are handed on in the order in which they were asked for."""

    def __init__(self, at_once: int = AT_ONCE, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._free = at_once
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a turn; after waiting in vain go on without one."""
        held = self._take()
        try:
            yield
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
