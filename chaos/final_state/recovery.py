"""How long after a fault the service works again, seen from outside.

After a fault of the relay's side: the first new record of every shard that was struck. Otherwise:
the first call that is answered. A shard that is struck again before it came back keeps counting.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

from chaos.history import HistoryWriter


@dataclass(slots=True)
class _Waiting:
    kind: str
    target: str
    began: float
    shards: set[int]


class Recoveries:
    """The faults from which something has not come back yet."""

    def __init__(self, history: HistoryWriter) -> None:
        self._history = history
        self._waiting: list[_Waiting] = []
        self._lock = threading.Lock()
        self.looks = 0
        """How often new records were seen."""

    def struck(self, kind: str, target: str, shards: Iterable[int]) -> None:
        """Note a fault that struck the relays of some shards."""
        struck = set(shards)
        if struck:
            with self._lock:
                self._waiting.append(_Waiting(kind, target, monotonic(), struck))

    def visible(self, shards: Iterable[int]) -> None:
        """Note new records of some shards."""
        self.looks += 1
        if not self._waiting:
            return
        now, seen = monotonic(), set(shards)
        with self._lock:
            for fault in self._waiting:
                fault.shards -= seen
            back = [fault for fault in self._waiting if not fault.shards]
            self._waiting = [fault for fault in self._waiting if fault.shards]
        for fault in back:
            self.back(fault.kind, fault.target, now - fault.began)

    def back(self, kind: str, target: str, seconds: float) -> None:
        """Note that the service works again."""
        self._history.write("back", "ok", kind=kind, target=target, seconds=round(seconds, 4))
