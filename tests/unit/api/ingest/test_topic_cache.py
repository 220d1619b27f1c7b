"""A prepare never waits for Kafka, and nothing is refused on old metadata or without Kafka."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from api.ingest.topic_cache import FRESH_SECONDS, TopicCache
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue


@dataclass
class ManualClock:
    """A clock that a test turns by hand."""

    seconds: float = 1000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


def known(
    catalogue: MemoryTopicCatalogue, clock: ManualClock | None = None, *, create: bool = False
) -> TopicCache:
    return TopicCache(catalogue, clock or ManualClock(), create=create)


async def test_a_known_topic_is_judged_without_asking_again() -> None:
    catalogue = MemoryTopicCatalogue(counts={"t": 2})
    topics = known(catalogue)
    for _ in range(3):
        await topics.know([("t", 1)])
        assert topics.refusal("t", 1) is None
    assert catalogue.asked == 1


async def test_a_missing_topic_is_asked_for_again_before_it_is_refused() -> None:
    catalogue = MemoryTopicCatalogue(counts={"t": 1})
    topics = known(catalogue)
    await topics.know([("t", None)])
    catalogue.counts["new"] = 1
    await topics.know([("new", None)])
    assert topics.refusal("new", None) is None
    await topics.know([("gone", None)])
    assert topics.refusal("gone", None) == "unknown-topic"
    assert catalogue.asked == 3


async def test_a_partition_beyond_the_topics_count_is_out_of_range() -> None:
    topics = known(MemoryTopicCatalogue(counts={"t": 2}))
    await topics.know([("t", 2)])
    assert topics.refusal("t", 1) is None
    assert topics.refusal("t", 2) == "partition-out-of-range"


async def test_metadata_is_asked_for_again_after_thirty_seconds() -> None:
    catalogue, clock = MemoryTopicCatalogue(counts={"t": 1}), ManualClock()
    topics = known(catalogue, clock)
    await topics.know([("t", None)])
    clock.seconds += FRESH_SECONDS + 1
    await topics.know([("t", None)])
    assert catalogue.asked == 2


async def test_nothing_is_refused_while_kafka_is_away_and_nobody_waits_for_it() -> None:
    catalogue = MemoryTopicCatalogue(away=True)
    topics = known(catalogue)
    for _ in range(5):
        await topics.know([("anything", 7)])
        assert topics.refusal("anything", 7) is None
    assert catalogue.asked == 1
    assert not topics.reachable


async def test_kafkas_return_is_noticed() -> None:
    catalogue, clock = MemoryTopicCatalogue(counts={"t": 1}, away=True), ManualClock()
    topics = known(catalogue, clock)
    await topics.know([("other", None)])
    catalogue.away = False
    clock.seconds += 2
    await topics.refresh()
    assert topics.reachable
    assert topics.refusal("other", None) == "unknown-topic"


async def test_a_missing_topic_is_created_first_where_the_operator_allows_it() -> None:
    catalogue = MemoryTopicCatalogue()
    topics = known(catalogue, create=True)
    await topics.know([("new", None)])
    assert catalogue.counts == {"new": 1}
    assert topics.refusal("new", None) is None


async def test_a_topic_prepared_for_while_kafka_was_away_is_created_when_it_is_back() -> None:
    catalogue, clock, stop = MemoryTopicCatalogue(away=True), ManualClock(), asyncio.Event()
    topics = known(catalogue, clock, create=True)
    await topics.know([("new", None)])
    catalogue.away = False
    clock.seconds += 2
    keeping = asyncio.create_task(topics.keep_fresh(stop))
    for _ in range(1000):
        if "new" in catalogue.counts:
            break
        await asyncio.sleep(0.01)
    stop.set()
    await keeping
    assert topics.refusal("new", None) is None
