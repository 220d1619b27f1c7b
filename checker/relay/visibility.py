"""Which published batches consumers see already: one question a second for all shards.

Kafka acknowledges a commit before consumers see its records. A batch is visible once the last
stable offset of each partition that it touched, that of its manifest included, is past it. If the
log of such a partition is gone, its topic was deleted: the relay reads what is left of the batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from outbox.clock import Clock
from outbox.errors import KafkaUnavailable
from outbox.reconciliation.log import Offsets, Partition
from outbox.relay.protocol.state import Visible
from outbox.telemetry.metrics import Metrics

LOOK_SECONDS: Final = 1.0
LATE_SECONDS: Final = 2.0
"""A batch that is visible by then needs no look at its logs."""
MOST_WAITING: Final = 1_000
"""The batches of a shard that are remembered one by one; later ones count as one."""

StableEnds = Callable[[Collection[Partition]], Offsets]
"""Returns the last stable offset of each partition. Raises KafkaUnavailable."""
CutOff = Callable[[Mapping[Partition, int]], Collection[Partition]]
"""Returns the partitions whose log ends before an offset. Raises KafkaUnavailable."""


@dataclass(frozen=True, slots=True)
class UnconfirmedBatch:
    """A committed batch that consumers may not see yet."""

    visible: Visible
    """The shard's last visible batch once this one is."""
    since: float
    """When Kafka acknowledged it, in monotonic seconds."""
    ends: Mapping[Partition, int]
    """The offset after its last record in each partition."""


class VisibilityWatch:
    """The unconfirmed batches of a process; relay threads add them, one thread confirms them."""

    def __init__(
        self,
        stable_ends: StableEnds,
        clock: Clock,
        metrics: Metrics,
        cut_off: CutOff = lambda _: (),
    ) -> None:
        self._stable_ends = stable_ends
        self._cut_off = cut_off
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[int, deque[UnconfirmedBatch]] = {}
        self._visible: dict[int, Visible] = {}
        self._doubtful_since: dict[int, float] = {}
        """Shards whose producer was dropped while a batch was unconfirmed."""
        self._gone: set[int] = set()
        """Shards with a batch whose log is gone; it must be read again."""
        metrics["unconfirmed_seconds"].set_function(self.oldest_seconds)

    def committed(self, shard: int, visible: Visible, ends: Mapping[Partition, int]) -> None:
        """Add a batch that Kafka has acknowledged."""
        batch = UnconfirmedBatch(visible, self._clock.monotonic(), ends)
        with self._lock:
            waiting = self._waiting.setdefault(shard, deque())
            if len(waiting) >= MOST_WAITING:
                batch = _joined(waiting.pop(), batch)
            waiting.append(batch)

    def visible(self, shard: int) -> Visible | None:
        """Return the last batch of the shard's present producer that consumers see."""
        return self._visible.get(shard)

    def doubted(self, shard: int) -> None:
        """Forget the batches of a dropped producer: what became of them is read from Kafka."""
        with self._lock:
            self._doubt(shard)
            self._gone.discard(shard)

    def is_gone(self, shard: int) -> bool:
        """Return, once, whether a log is gone that one of the shard's batches is in."""
        with self._lock:
            gone = shard in self._gone
            self._gone.discard(shard)
            return gone

    def settled(self, shard: int, *, proven: bool) -> None:
        """Note that the shard's last batches were read from Kafka, or could not be read."""
        with self._lock:
            if proven:
                self._doubtful_since.pop(shard, None)
            else:
                self._doubtful_since.setdefault(shard, self._clock.monotonic())

    def released(self, shard: int) -> None:
        """Forget a shard that another process may own."""
        self.doubted(shard)
        self.settled(shard, proven=True)

    def oldest_seconds(self) -> float:
        """Return the age of the oldest unconfirmed batch (s); 0 if there is none."""
        with self._lock:
            since = [each[0].since for each in self._waiting.values() if each]
            since += self._doubtful_since.values()
        return self._clock.monotonic() - min(since) if since else 0.0

    def look(self) -> None:
        """Ask Kafka once, and confirm the batches that consumers see."""
        with self._lock:
            partitions = {p for each in self._waiting.values() for b in each for p in b.ends}
        if not partitions:
            return
        try:
            stable = self._stable_ends(partitions).offsets
        except KafkaUnavailable:
            return
        with self._lock:
            for shard, waiting in self._waiting.items():
                while waiting and _is_visible(waiting[0], stable):
                    self._visible[shard] = waiting.popleft().visible
        self._look_for_gone_logs(stable)

    def _look_for_gone_logs(self, stable: Mapping[Partition, int]) -> None:
        """Doubt the batches of each shard that has one in a log that is gone."""
        hidden: dict[Partition, int] = {}
        late = self._clock.monotonic() - LATE_SECONDS
        with self._lock:
            batches = [b for waiting in self._waiting.values() for b in waiting if b.since <= late]
        for batch in batches:
            for partition, end in batch.ends.items():
                if stable.get(partition, -1) < end:
                    hidden[partition] = max(end, hidden.get(partition, 0))
        try:
            gone = {*self._cut_off(hidden)} if hidden else set()
        except KafkaUnavailable:
            return
        with self._lock:
            for shard, waiting in list(self._waiting.items()):
                if any(not gone.isdisjoint(batch.ends) for batch in waiting):
                    self._doubt(shard)
                    self._gone.add(shard)

    def _doubt(self, shard: int) -> None:
        self._visible.pop(shard, None)
        for batch in self._waiting.pop(shard, ()):
            self._doubtful_since.setdefault(shard, batch.since)


def _is_visible(batch: UnconfirmedBatch, stable: Mapping[Partition, int]) -> bool:
    return all(stable.get(partition, -1) >= end for partition, end in batch.ends.items())


def _joined(older: UnconfirmedBatch, newer: UnconfirmedBatch) -> UnconfirmedBatch:
    """Return two batches as one: it is visible once both are."""
    return replace(older, visible=newer.visible, ends={**older.ends, **newer.ends})
