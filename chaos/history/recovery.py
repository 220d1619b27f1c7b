"""Measures the time from a fault until the service works again, seen from outside.

After a fault of a relay, that is the first new record of every affected shard. Otherwise it is the
first answered call. If a shard is hit again before its recovery, the time continues.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from chaos.history.writer import HistoryWriter
from outbox.messages.message_id import SHARDS

ALL_SHARDS: Final = frozenset(range(SHARDS))
"""What a fault of a whole store hits."""


@dataclass(slots=True)
class _Waiting:
    kind: str
    target: str
    began: float
    shards: set[int]


class Recoveries:
    """The faults whose recovery is not complete."""

    def __init__(self, history: HistoryWriter) -> None:
        self._history = history
        self._waiting: list[_Waiting] = []
        self._lock = threading.Lock()
        self.observations = 0
        """Counts the observations of new records."""
        self.shards_in_use = ALL_SHARDS
        """The shards that have messages: no other shard will ever show a new record."""

    def record_fault(self, kind: str, target: str, shards: Iterable[int]) -> None:
        """Record a fault that hit the relays of some shards."""
        hit = set(self.shards_in_use.intersection(shards))
        if hit:
            with self._lock:
                self._waiting.append(_Waiting(kind, target, monotonic(), hit))

    def record_records(self, shards: Iterable[int]) -> None:
        """Record new records of some shards."""
        self.observations += 1
        if not self._waiting:
            return
        now, seen = monotonic(), set(shards)
        with self._lock:
            for fault in self._waiting:
                fault.shards -= seen
            back = [fault for fault in self._waiting if not fault.shards]
            self._waiting = [fault for fault in self._waiting if fault.shards]
        for fault in back:
            self.record_recovery(fault.kind, fault.target, now - fault.began)

    def record_recovery(self, kind: str, target: str, seconds: float) -> None:
        """Record that the service works again."""
        self._history.write("back", "ok", kind=kind, target=target, seconds=round(seconds, 4))
