"""A log and a clock that note what a cut asks of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts
from outbox.reconciliation.snapshot import RelayCut

MANIFESTS, DATA = Partition("progress", 0), Partition("points", 0)


class SnapshotTaken(Exception):
    """All that is asked before the snapshot has been asked."""


@dataclass
class Noting:
    """Both stores, which note what they are asked; a transaction stays open for two looks."""

    asked: list[Any] = field(default_factory=list)
    looks: int = 0
    jdbc: Any = None

    def listed(self) -> Sequence[RelayCut]:
        """Return the rows of no relay."""
        self.asked.append("listed")
        return []

    def topics(self) -> Sequence[str]:
        """Return the topic of data."""
        self.asked.append("topics")
        return ["points"]

    def snapshot(self) -> NoReturn:
        """Note the snapshot and go no further."""
        self.asked.append("snapshot")
        raise SnapshotTaken

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return a partition a topic."""
        return [Partition(topic, 0) for topic in topics]

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return ten records of each partition, the last one within an open transaction."""
        self.asked += [(partition.topic, end) for partition in partitions]
        if end is LogEnd.START:
            return Offsets(offsets=dict.fromkeys(partitions, 0))
        if end is LogEnd.LAST_STABLE and DATA in partitions:
            self.looks += 1
            return Offsets(offsets={DATA: 9 if self.looks < 3 else 12})
        return Offsets(offsets=dict.fromkeys(partitions, 10))

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return the topic of data, always the same."""
        return {topic: TopicFacts(id="first", partitions=1) for topic in topics}

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Return nothing."""
        return {}

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Return nothing."""
        return []


class Clock:
    """A clock that stands still."""

    def now(self) -> datetime:
        """Return some time."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        """Return the same time."""
        return 0.0
