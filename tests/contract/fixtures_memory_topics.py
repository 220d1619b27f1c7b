"""A list of topics in memory: for tests that need no broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outbox.errors import KafkaUnavailable
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue


@dataclass(slots=True)
class MemoryTopicCatalogue(KafkaTopicCatalogue):
    """Topics and their partition counts; ``unavailable`` simulates a broker that is down."""

    counts: dict[str, int] = field(default_factory=dict)
    default_partitions: int = 1
    unavailable: bool = False
    asked: int = 0

    def partitions(self) -> Mapping[str, int]:
        """Return every topic's partition count."""
        self.asked += 1
        if self.unavailable:
            raise KafkaUnavailable("unavailable")
        return dict(self.counts)

    def create(self, topics: Sequence[str]) -> Sequence[str]:
        """Create missing topics."""
        if self.unavailable:
            raise KafkaUnavailable("unavailable")
        for topic in topics:
            self.counts.setdefault(topic, self.default_partitions)
        return topics
