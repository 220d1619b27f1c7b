"""A prepare does not wait for Kafka; nothing is refused on old metadata or without Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from api.ingest.topic_cache import FRESH_SECONDS, TopicCache
from outbox.messages.topics import UNSEEN, SeenTopic
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue
from tests.unit.checker.checks.fixtures_fakes import ManualClock


def make_cache(catalogue: MemoryTopicCatalogue, clock: ManualClock | None = None) -> TopicCache:
    return TopicCache(catalogue, clock or ManualClock(), create=False)


async def look_up(topics: TopicCache, topic: str, partition: int | None = None) -> SeenTopic | str:
    return (await topics.look_up([(topic, partition)]))[topic, partition]


async def test_a_known_topic_needs_no_further_read() -> None:
    catalogue = MemoryTopicCatalogue(counts={"t": 2})
    topics = make_cache(catalogue)
    for _ in range(3):
        assert await look_up(topics, "t", 1) is UNSEEN
    assert catalogue.asked == 1


async def test_metadata_is_read_again_before_a_missing_topic_is_refused() -> None:
    catalogue = MemoryTopicCatalogue(counts={"t": 1})
    topics = make_cache(catalogue)
    await look_up(topics, "t")
    catalogue.counts["new"] = 1
    assert await look_up(topics, "new") is UNSEEN
    assert await look_up(topics, "gone") == "unknown-topic"
    assert catalogue.asked == 3


async def test_a_topic_that_is_created_while_the_metadata_is_read_is_not_refused() -> None:
    class LateCatalogue(MemoryTopicCatalogue):
        """Its answer is as old as the question: one topic is created before it arrives."""

        def partitions(self) -> Mapping[str, int]:
            found = super().partitions()
            self.counts["new"] = 1
            return found

    topics = make_cache(LateCatalogue())
    background = asyncio.create_task(topics.refresh())
    await asyncio.sleep(0)
    found = await asyncio.gather(*(look_up(topics, "new") for _ in range(3)))
    await background
    assert found == [UNSEEN] * 3


async def test_metadata_is_read_again_after_thirty_seconds() -> None:
    catalogue, clock = MemoryTopicCatalogue(counts={"t": 1}), ManualClock()
    topics = make_cache(catalogue, clock)
    await look_up(topics, "t")
    clock.seconds += FRESH_SECONDS + 1
    await look_up(topics, "t")
    assert catalogue.asked == 2


async def test_a_refresh_notices_that_kafka_is_back() -> None:
    catalogue, clock = MemoryTopicCatalogue(counts={"t": 1}, unavailable=True), ManualClock()
    topics = make_cache(catalogue, clock)
    await look_up(topics, "other")
    catalogue.unavailable = False
    clock.seconds += 2
    await topics.refresh()
    assert topics.reachable
    assert await look_up(topics, "other") == "unknown-topic"
