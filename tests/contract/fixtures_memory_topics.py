"""The TopicCatalogue's promises in memory: for tests that need no broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outbox.errors import KafkaUnavailable


@dataclass(slots=True)
class MemoryTopicCatalogue:
    """Topics and their partition counts; ``away`` stands for a broker that does not answer."""

    counts: dict[str, int] = field(default_factory=dict)
    default_partitions: int = 1
    away: bool = False
    asked: int = 0

    def partitions(self) -> Mapping[str, int]:
        """Return every topic's partition count; see TopicCatalogue.partitions."""
        self.asked += 1
        if self.away:
            raise KafkaUnavailable("away")
        return dict(self.counts)

    def create(self, topics: Sequence[str]) -> None:
        """Create missing topics; see TopicCatalogue.create."""
        if self.away:
            raise KafkaUnavailable("away")
        for topic in topics:
            self.counts.setdefault(topic, self.default_partitions)
