"""Names messages that only Kafka has: recovery lists their ids, their headers name the producer.

This runs apart from the relay's recovery, which waits for no data topic. An end for an id without a
name gets the same answer as before: there is no such message. So does an id whose record is gone.
One checker works at a time; names that were read and not stored are read again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from checker.advisory_locks import AdvisoryLocks
from outbox.errors import KafkaUnavailable
from outbox.telemetry.dependency_log import DependencyLog

if TYPE_CHECKING:
    from outbox.kafka.topic_scan import KafkaTopicScan
    from outbox.postgres.messages.seen_topics import PostgresSeenTopics
    from outbox.postgres.relay.orphans import PostgresOrphans

BATCH: Final = 500
POLL_SECONDS: Final = 5.0
KAFKA_LOST_SECONDS: Final = 30.0


class OrphanNames:
    """Names one batch of orphans per step."""

    def __init__(
        self,
        orphans: PostgresOrphans,
        topics: PostgresSeenTopics,
        records: KafkaTopicScan,
        locks: AdvisoryLocks,
    ) -> None:
        self._orphans = orphans
        self._topics = topics
        self._records = records
        self._locks = locks
        self._kafka = DependencyLog("kafka", task="orphans")

    async def step(self) -> float:
        """Name the oldest unnamed ids; return the seconds until the next step."""
        async with self._locks.try_lock("orphans") as held:
            sought = await self._orphans.unnamed(BATCH) if held else ()
            if not sought:
                return POLL_SECONDS
            topics = await self._topics.all()
            try:
                named = await asyncio.to_thread(self._records.read, sought, topics)
            except KafkaUnavailable as error:
                self._kafka.lost(error)
                return KAFKA_LOST_SECONDS
            self._kafka.back()
            await self._orphans.note(sought, named)
        return 0.0 if len(sought) == BATCH else POLL_SECONDS
