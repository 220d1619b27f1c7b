"""The contract of the list of topics: Kafka's, and its twin in memory."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.errors import KafkaUnavailable
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def catalogue(request: pytest.FixtureRequest) -> KafkaTopicCatalogue:
    """Return each implementation."""
    if request.param == "memory":
        return MemoryTopicCatalogue()
    broker: EmbeddedKafka = request.getfixturevalue("kafka_broker")
    return KafkaTopicCatalogue(broker.bootstrap_servers, {})


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def unreachable(request: pytest.FixtureRequest) -> KafkaTopicCatalogue:
    """Return each implementation with an unreachable broker."""
    if request.param == "memory":
        return MemoryTopicCatalogue(unavailable=True)
    return KafkaTopicCatalogue("127.0.0.1:1", {})


def test_a_created_topic_is_listed_with_its_partitions(catalogue: KafkaTopicCatalogue) -> None:
    name = f"catalogue.{uuid4()}"
    assert name not in catalogue.partitions()
    catalogue.create([name])
    assert (eventually(lambda: catalogue.partitions().get(name)) or 0) >= 1


def test_creating_a_topic_that_exists_changes_nothing(catalogue: KafkaTopicCatalogue) -> None:
    name = f"catalogue.{uuid4()}"
    catalogue.create([name])
    first = eventually(lambda: catalogue.partitions().get(name))
    catalogue.create([name])
    assert catalogue.partitions()[name] == first


def test_an_unreachable_broker_raises_kafka_unavailable(unreachable: KafkaTopicCatalogue) -> None:
    with pytest.raises(KafkaUnavailable):
        unreachable.partitions()


def eventually(ask: Callable[[], int | None]) -> int | None:
    """Ask until there is an answer, at most fifty times; each question waits for the broker."""
    return next((answer for _ in range(50) if (answer := ask()) is not None), None)
