"""A broker with the defaults of Kafka that our own test brokers change: it creates topics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from devservers.kafka import EmbeddedKafka
from outbox.kafka.client_config import producer_config
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.relay.protocol.state import Refused
from tests.fixtures_separate_broker import separate_broker
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain, first_batch

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

EXPIRY_SECONDS: Final = 1
DEFAULTS: Final = {
    "auto.create.topics.enable": "true",
    "transactional.id.expiration.ms": str(EXPIRY_SECONDS * 1000),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    "producer.id.expiration.ms": str(EXPIRY_SECONDS * 1000),
    "producer.id.expiration.check.interval.ms": "200",
}


@pytest.fixture(scope="module")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A separate broker for this file, in the place of the shared one."""
    with separate_broker(tmp_path_factory.mktemp("defaults"), settings=DEFAULTS) as broker:
        yield broker


def topics(world: RelayWorld) -> set[str]:
    """Return the topics that exist."""
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers, "log_level": 0})
    return {*admin.list_topics(timeout=60).topics}


def test_a_topic_that_does_not_exist_is_refused_and_not_created(world: RelayWorld) -> None:
    servers, missing = world.bootstrap_servers, f"missing-{uuid4()}"
    publisher = KafkaPublisher(lambda name: producer_config(servers, {}, f"never.{name}"), SHARD)
    publisher.fence(uuid4())
    publisher.begin()
    delivery = publisher.publish([Record(missing, b"k", b"v", None, ())], b"", apart=True)
    publisher.drop()
    assert delivery.refused is not None
    assert delivery.refused.refused is Refused.TOPIC
    assert missing not in topics(world)


def test_a_relay_that_was_idle_until_kafka_forgot_its_producer_publishes_each_message_once(
    world: RelayWorld,
) -> None:
    relay = world.relay()
    world.commit_values(b"one")
    first_batch(relay)
    threading.Event().wait(3 * EXPIRY_SECONDS)
    world.commit_values(b"two")
    drain(relay)
    assert world.values(2) == [b"one", b"two"]
