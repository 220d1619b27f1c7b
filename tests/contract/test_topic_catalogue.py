"""The contract of the list of topics: Kafka's, and its twin in memory."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def catalogue(request: pytest.FixtureRequest) -> KafkaTopicCatalogue:
    """Return each implementation."""
    if request.param == "memory":
        return MemoryTopicCatalogue()
    broker: EmbeddedKafka = request.getfixturevalue("kafka_broker")
    return KafkaTopicCatalogue(broker.bootstrap_servers, {})


def test_a_created_topic_is_listed_with_its_partitions(catalogue: KafkaTopicCatalogue) -> None:
    name = f"catalogue.{uuid4()}"
    assert name not in catalogue.partitions()
    catalogue.create([name])
    assert (eventually(lambda: catalogue.partitions().get(name)) or 0) >= 1


def eventually(ask: Callable[[], int | None]) -> int | None:
    """Ask until there is an answer, at most fifty times; each question waits for the broker."""
    return next((answer for _ in range(50) if (answer := ask()) is not None), None)
