"""What Kafka delivers again after a rebalance, or in a share group, has no second effect."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import AcknowledgeType, Consumer, Message, Producer, ShareConsumer

from devservers.kafka import EmbeddedKafka
from outbox_client.inbox.psycopg import PsycopgInbox
from tests.fixtures_kafka import make_topic, set_group
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

RECORDS, PARTITIONS = 20, 2
INBOX = PsycopgInbox("member-service")


@pytest.fixture
def topic(kafka_broker: EmbeddedKafka) -> str:
    """A topic with ten records in each of its partitions."""
    name = make_topic(kafka_broker.bootstrap_servers, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for number in range(RECORDS):
        headers: list[tuple[str, str | bytes | None]] = [("outbox_message_id", b"m-%d" % number)]
        producer.produce(name, b"100", partition=number % PARTITIONS, headers=headers)
    assert producer.flush(60) == 0
    return name


def apply(database: psycopg.Connection[Any], records: Iterable[Message]) -> list[bool]:
    """Return for each record whether it has had its effect now."""
    with database.transaction():
        return [INBOX.first_time(database, record) for record in records]


def test_after_a_rebalance_what_was_applied_and_not_committed_has_no_second_effect(
    kafka_broker: EmbeddedKafka, topic: str, database: psycopg.Connection[Any]
) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka_broker.bootstrap_servers,
        "group.id": f"group-{uuid4()}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 200,
    }
    answers: list[bool] = []

    def read(*members: Consumer) -> int:
        for member in members:
            answers.extend(apply(database, member.consume(RECORDS, timeout=0.1)))
        return len(answers)

    with closing(Consumer(settings)) as first, closing(Consumer(settings)) as second:
        first.subscribe([topic])
        wait_for(lambda: read(first) == RECORDS)
        second.subscribe([topic])
        wait_for(lambda: read(first, second) >= 2 * RECORDS and second.assignment())
    assert answers == [True] * RECORDS + [False] * (len(answers) - RECORDS)


def test_what_a_share_group_delivers_again_has_no_second_effect(
    kafka_broker: EmbeddedKafka, topic: str, database: psycopg.Connection[Any]
) -> None:
    group = f"share-{uuid4()}"
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka_broker.bootstrap_servers,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
    }
    set_group(kafka_broker.bootstrap_servers, group, "share.auto.offset.reset", "earliest")
    with ShareConsumer(settings) as dying:
        dying.subscribe([topic])
        applied = apply(database, wait_for(lambda: dying.poll(timeout=0.5)))
    answers: list[tuple[int | None, bool]] = []

    def share() -> int:
        records = heir.poll(timeout=0.5)
        times = [record.delivery_count() for record in records]
        answers.extend(zip(times, apply(database, records), strict=True))
        for record in records:
            heir.acknowledge(record, AcknowledgeType.ACCEPT)
        return len(answers)

    with ShareConsumer(settings) as heir:
        heir.subscribe([topic])
        wait_for(lambda: share() == RECORDS)
    assert sorted(answers) == [(1, True)] * (RECORDS - len(applied)) + [(2, False)] * len(applied)
