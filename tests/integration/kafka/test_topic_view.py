"""What is stored of a topic, and the size that a prepare counts, agree with the broker."""

from __future__ import annotations

from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, Message, Producer

from api.http.problems import Problem
from api.ingest.prepare_rules import refuse_unpublishable
from api.ingest.record_size import LONGEST_BATCH, batch_bytes
from devservers.kafka import EmbeddedKafka
from outbox.kafka.topic_view import KafkaTopicView
from outbox.messages import message
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Committed, record_of
from outbox.messages.topics import SeenTopic
from tests.fixtures_kafka import make_topic

pytestmark = pytest.mark.kafka

LIMIT: Final = 20_000
SEGMENT: Final = 1 << 20
OWN_LIMIT: Final = {"message.max.bytes": 4 << 20}
MEMBERS: tuple[dict[str, Any], ...] = (
    {},
    {"key": b"k" * 63},
    {"key": b"k" * 64, "transaction_id": "\u00fc" * 32},
    {"content_type": "application/json", "traceparent": "0" * 55},
    {"headers": tuple((f"name-{n}", b"v" * n or None) for n in range(60))},
    {"headers": tuple((f"name-{n}", b"\xff" * n) for n in range(64)), "key": b""},
)


def asked(topic: str, size: int, members: dict[str, Any]) -> message.Message:
    return message.Message(producer_group="g", topic=topic, value=b"v" * size, **members)


def is_admitted(seen: SeenTopic, wanted: message.Message) -> bool:
    try:
        refuse_unpublishable(wanted, seen)
    except Problem:
        return False
    return True


def taken_by(servers: str, messages: list[message.Message]) -> list[bool]:
    """Return which records Kafka takes, each in a batch of its own, with their longest headers."""
    told: dict[int, KafkaError | None] = {}
    alone = {"acks": "all", "batch.num.messages": 1, "batch.size": OWN_LIMIT["message.max.bytes"]}
    producer = Producer({"bootstrap.servers": servers, **alone, **OWN_LIMIT})
    for place, each in enumerate(messages):

        def note(error: KafkaError | None, _: Message, place: int = place) -> None:
            told[place] = error

        named = ("transaction_id", "topic", "key", "value", "partition")
        texts = ("content_type", "traceparent", "headers")
        fields = [*(getattr(each, name) for name in (*named, *texts)), 0]
        committed = Committed(HalfId(1), Nonce(1), "producer", "g", *fields)
        topic, key, value, _, headers = record_of(committed, LONGEST_BATCH)
        producer.produce(topic, value, key, headers=list(headers), on_delivery=note)
    assert producer.flush(120) == 0
    errors = [told[place] for place in range(len(messages))]
    assert {error.name() for error in errors if error} <= {
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
    }
    return [error is None for error in errors]


@pytest.mark.parametrize(
    ("members", "limit", "smallest", "settings"),
    [
        *((each, LIMIT, -200, {"max.message.bytes": str(LIMIT)}) for each in MEMBERS),
        ({}, SEGMENT, 0, {"max.message.bytes": str(4 << 20), "segment.bytes": str(SEGMENT)}),
    ],
    ids=[*range(len(MEMBERS)), "segment"],
)
def test_a_prepare_admits_the_sizes_that_the_broker_takes(
    kafka_broker: EmbeddedKafka,
    members: dict[str, Any],
    limit: int,
    smallest: int,
    settings: dict[str, str],
) -> None:
    servers = kafka_broker.bootstrap_servers
    topic = make_topic(servers, partitions=1, config=settings)
    seen = KafkaTopicView(servers, OWN_LIMIT).read([topic])[topic]
    rest = batch_bytes(asked(topic, limit // 2, members)) - limit // 2
    messages = [asked(topic, limit - rest + more, members) for more in range(smallest, 2)]
    admitted = [is_admitted(seen, each) for each in messages]
    assert admitted == [True] * (1 - smallest) + [False]
    assert taken_by(servers, messages) == admitted
