"""What Kafka says about topics, remembered so that a prepare never waits for Kafka.

Judged on metadata at most 30 s old and asked again before anything is refused. While Kafka is away
nothing is refused: a prepare must not fail because of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from outbox.clock import Clock
from outbox.errors import KafkaUnavailable
from outbox.messages.ports import TopicCatalogue

FRESH_SECONDS: Final = 30.0
REFRESH_SECONDS: Final = 10.0
"""How often the background asks, so that hot prepares find fresh metadata."""
AWAY_SECONDS: Final = 1.0
"""How long after a failed question Kafka is asked again."""
CREATED_LOOKS: Final = 100
CREATED_PAUSE_SECONDS: Final = 0.05
"""A created topic reaches the brokers' metadata a moment later; bounded at about 5 s."""


class TopicCache:
    """Partition counts by topic."""

    def __init__(self, catalogue: TopicCatalogue, clock: Clock, *, create: bool) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._create = create
        self._counts: dict[str, int] = {}
        self._read_at: float | None = None
        self._away_since: float | None = None
        self._asking: asyncio.Task[None] | None = None
        self._owed: set[str] = set()
        """Topics prepared for unjudged, while Kafka was away."""

    @property
    def reachable(self) -> bool:
        """Whether the last question to Kafka was answered, at most 30 s ago."""
        return self._away_since is None and self._fresh()

    async def know(self, wanted: Collection[tuple[str, int | None]]) -> None:
        """Ask Kafka again if any of these (topic, partition) would be refused as things stand.

        While Kafka is away nobody waits for it here: the background asks until it is back.
        """
        if self._away_since is None:
            if all(self._has(topic, partition) for topic, partition in wanted):
                return
            await self.refresh()
        if not self.reachable:
            self._owed.update(topic for topic, _ in wanted)
            return
        missing = sorted({topic for topic, _ in wanted if topic not in self._counts})
        if self._create and missing:
            await self._make(missing)

    def refusal(self, topic: str, partition: int | None) -> str | None:
        """Return the slug that refuses this target, or None when it may be prepared."""
        if self._has(topic, partition) or not self.reachable:
            return None
        return "partition-out-of-range" if topic in self._counts else "unknown-topic"

    async def refresh(self) -> None:
        """Read Kafka's metadata; callers that come meanwhile share the one question."""
        if self._is_away():
            return
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        await asyncio.shield(self._asking)

    async def keep_fresh(self, stop: asyncio.Event) -> None:
        """Read the metadata every few seconds until ``stop`` is set."""
        while not stop.is_set():
            await self.refresh()
            await self._make_owed()
            pause = REFRESH_SECONDS if self._away_since is None else AWAY_SECONDS
            try:
                async with asyncio.timeout(pause):
                    await stop.wait()
            except TimeoutError:
                continue

    def _has(self, topic: str, partition: int | None) -> bool:
        count = self._counts.get(topic)
        return count is not None and (partition is None or partition < count) and self._fresh()

    def _fresh(self) -> bool:
        now = self._clock.monotonic()
        return self._read_at is not None and now - self._read_at <= FRESH_SECONDS

    def _is_away(self) -> bool:
        now = self._clock.monotonic()
        return self._away_since is not None and now - self._away_since < AWAY_SECONDS

    async def _ask(self) -> None:
        try:
            self._counts = dict(await asyncio.to_thread(self._catalogue.partitions))
            self._read_at, self._away_since = self._clock.monotonic(), None
        except KafkaUnavailable:
            self._away_since = self._clock.monotonic()
        finally:
            self._asking = None

    async def _make_owed(self) -> None:
        """Create what was prepared for while Kafka was away, once it is back."""
        if not self.reachable:
            return
        missing, self._owed = sorted(self._owed - self._counts.keys()), set()
        if self._create and missing:
            await self._make(missing)

    async def _make(self, topics: list[str]) -> None:
        try:
            await asyncio.to_thread(self._catalogue.create, topics)
        except KafkaUnavailable:
            self._away_since = self._clock.monotonic()
            return
        await self._see(topics)

    async def _see(self, topics: list[str]) -> None:
        """Wait until the brokers' metadata shows what the controller has just created."""
        for _ in range(CREATED_LOOKS):
            await self.refresh()
            if not self.reachable or self._counts.keys() >= set(topics):
                return
            await asyncio.sleep(CREATED_PAUSE_SECONDS)
