"""A cache of Kafka's topic metadata, so that a prepare does not wait for Kafka.

Topics are checked against metadata that is at most 30 s old, and it is read again before anything
is refused. While Kafka is down nothing is refused: a prepare must not fail because of it.

Size limits and permissions are those of the relay's principal: the checker stores them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable, KafkaUnavailable
from outbox.messages.topics import UNSEEN, SeenTopic

if TYPE_CHECKING:
    from outbox.kafka.topic_catalogue import KafkaTopicCatalogue

Target = tuple[str, int | None]
"""A topic and the partition that is asked for."""

FRESH_SECONDS: Final = 30.0
REFRESH_SECONDS: Final = 10.0
"""How often the background task reads, so that prepares find fresh metadata."""
RETRY_SECONDS: Final = 1.0
"""How long after a failed read Kafka is asked again."""


class TopicCache:
    """Partition counts by topic, and what the relay's principal saw of it."""

    def __init__(
        self,
        catalogue: KafkaTopicCatalogue,
        clock: Clock,
        *,
        create: bool,
        seen: Callable[[], Awaitable[Mapping[str, SeenTopic]]] | None = None,
    ) -> None:
        """Take Kafka's list, and what reads the stored views of the relay's principal."""
        self._catalogue = catalogue
        self._stored = seen
        self._seen: Mapping[str, SeenTopic] = {}
        self._clock = clock
        self._create = create
        self._counts: dict[str, int] = {}
        self._read_at: float | None = None
        self._failed_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def reachable(self) -> bool:
        """True if Kafka answered the last read, at most 30 s ago."""
        now = self._clock.monotonic()
        fresh = self._read_at is not None and now - self._read_at <= FRESH_SECONDS
        return fresh and self._failed_at is None

    async def look_up(self, targets: Collection[Target]) -> dict[Target, SeenTopic | str]:
        """Return what the relay's principal saw of each topic, or the slug that refuses a target.

        Kafka's metadata is read again before it refuses any of them. While Kafka is down nothing
        is refused, and no caller waits here: the background task reads until it answers again.
        """
        if self._failed_at is None and not self._has_all(targets):
            is_under_way = self._reading is not None
            await self.refresh()
            if is_under_way and not self._has_all(targets):  # it began before the topic was created
                await self.refresh()
        if self._create and self.reachable:
            await self._create_topics({topic for topic, _ in targets}.difference(self._counts))
        if not self.reachable:
            return dict.fromkeys(targets, UNSEEN)
        return {target: self._find(*target) for target in targets}

    async def refresh(self) -> None:
        """Read Kafka's metadata; concurrent callers share one read."""
        now = self._clock.monotonic()
        if self._failed_at is not None and now - self._failed_at < RETRY_SECONDS:
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def keep_fresh(self) -> float:
        """Read the metadata and the stored views; return the seconds until the next time."""
        await self.refresh()
        if self._stored is not None:
            with suppress(DatabaseUnavailable):  # the last ones stay
                self._seen = await self._stored()
        return REFRESH_SECONDS if self._failed_at is None else RETRY_SECONDS

    def _has_all(self, targets: Collection[Target]) -> bool:
        return self.reachable and not any(isinstance(self._find(*each), str) for each in targets)

    def _find(self, topic: str, partition: int | None) -> SeenTopic | str:
        count = self._counts.get(topic)
        if count is None:
            return "unknown-topic"
        if partition is not None and partition >= count:
            return "partition-out-of-range"
        return self._seen.get(topic, UNSEEN)

    async def _read(self) -> None:
        try:
            self._counts = dict(await asyncio.to_thread(self._catalogue.partitions))
            self._read_at, self._failed_at = self._clock.monotonic(), None
        except KafkaUnavailable:
            self._failed_at = self._clock.monotonic()
        finally:
            self._reading = None

    async def _create_topics(self, topics: Collection[str]) -> None:
        """Create topics, if any; one has a partition before the brokers' metadata shows it."""
        if not topics:
            return
        try:
            created = await asyncio.to_thread(self._catalogue.create, sorted(topics))
        except KafkaUnavailable:
            self._failed_at = self._clock.monotonic()
            return
        await self.refresh()
        self._counts = dict.fromkeys(created, 1) | self._counts
