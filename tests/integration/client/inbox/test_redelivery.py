"""What Kafka delivers again after a rebalance has no second effect."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Consumer, Message, Producer

from devservers.kafka import EmbeddedKafka
from outbox_client.inbox.psycopg import PsycopgInbox
from tests.fixtures_kafka import make_topic
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
