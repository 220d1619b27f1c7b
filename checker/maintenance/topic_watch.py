"""Stores what the relay's principal sees of topics in Kafka; reports added partitions, lost rights.

Prepares compare with it (``api.ingest``). More partitions move keys: the order of a key across that
change is not promised, and its operator must know when it was. One checker works at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from checker.advisory_locks import AdvisoryLocks
from outbox.errors import KafkaUnavailable
from outbox.messages.topics import SeenTopic
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from outbox.kafka.topic_view import KafkaTopicView
    from outbox.postgres.messages.seen_topics import PostgresSeenTopics

POLL_SECONDS: Final = 15.0


class TopicWatch:
    """Looks at every topic once per step."""

    def __init__(
        self,
        topics: PostgresSeenTopics,
        view: KafkaTopicView,
        locks: AdvisoryLocks,
        metrics: Metrics,
    ) -> None:
        self._topics = topics
        self._view = view
        self._locks = locks
        self._metrics = metrics
        self._missing: frozenset[str] = frozenset()
        """The rights that were missing at the last look, in words."""
        self._log = get_logger()

    async def step(self) -> float:
        """Store what has changed; return the seconds until the next step."""
        async with self._locks.try_lock("topics") as held:
            if held:
                await self._look()
        return POLL_SECONDS

    async def _look(self) -> None:
        """While Kafka is away the last view stays; the relay reports the outage."""
        known = await self._topics.all()
        try:
            seen = await asyncio.to_thread(self._view.read, known.keys())
            self._report_missing(await asyncio.to_thread(self._view.missing_rights, known.keys()))
        except KafkaUnavailable:
            return
        changed = {name: each for name, each in seen.items() if each != known[name]}
        if changed:
            await self._report_growth(known, changed)
            await self._topics.store(changed)

    def _report_missing(self, missing: Collection[str]) -> None:
        """Log each right once, until it is back."""
        for each in sorted({*missing} - self._missing):
            self._log.warning(Event.PERMISSION_MISSING, dependency="kafka", error=each)
        self._missing = frozenset(missing)

    async def _report_growth(
        self, known: Mapping[str, SeenTopic], changed: Mapping[str, SeenTopic]
    ) -> None:
        """Report before the view is stored: a crash repeats the report."""
        for name, each in changed.items():
            before, after = known[name].partitions, each.partitions
            if before is not None and after is not None and after > before:
                self._log.warning(Event.TOPIC_GREW, topic=name, before=before, after=after)
                self._metrics["topic_partitions_added_total"].labels(name).inc(after - before)
                await self._topics.note_growth(name, before, after)
