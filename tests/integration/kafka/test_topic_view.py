"""The size limit that is stored for a topic is that of the brokers."""

from __future__ import annotations

from typing import Final

import pytest
from confluent_kafka import KafkaError, Message, Producer

from devservers.kafka import EmbeddedKafka
from outbox.kafka.client_config import idempotent_producer_config
from outbox.kafka.topic_view import KafkaTopicView
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Committed, record_of
from tests.fixtures_kafka import make_topic

pytestmark = pytest.mark.kafka

LIMIT: Final = 2_000
LENGTHS: Final = 2
"""The bytes by which the lengths of such a record and its value are longer than the shortest."""


def least(topic: str, size: int) -> Committed:
    """Return a message of this size whose record has the fewest bytes beside it."""
    value = b"v" * size
    return Committed(
        HalfId(1), Nonce(1), "check", "g", None, topic, None, value, None, None, None, ()
    )


def refusal_of(servers: str, message: Committed) -> str | None:
    """Return the error with which Kafka refuses the record of a message."""
    told: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        told.append(error)

    producer = Producer(idempotent_producer_config(servers, {}))
    topic, key, value, _, headers = record_of(message, "3.1.0")
    producer.produce(topic, value, key, headers=list(headers), on_delivery=note)
    producer.flush(60)
    [error] = told
    return error.name() if error else None


def test_what_is_larger_than_the_limit_is_refused_and_what_is_not_is_taken(
    kafka_broker: EmbeddedKafka,
) -> None:
    servers = kafka_broker.bootstrap_servers
    topic = make_topic(servers, partitions=1, config={"max.message.bytes": str(LIMIT)})
    most = KafkaTopicView(servers, {}).read([topic])[topic].max_content_bytes
    assert most is not None
    assert refusal_of(servers, least(topic, most - LENGTHS)) is None
    assert refusal_of(servers, least(topic, most - LENGTHS + 1)) == "MSG_SIZE_TOO_LARGE"
