"""What Kafka delivers again after a rebalance, or in a share group, has no second effect."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import AcknowledgeType, Consumer, Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

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


@pytest.fixture
def database(local_database: str) -> Iterator[psycopg.Connection[Any]]:
    """The consumers' database."""
    with psycopg.connect(local_database, autocommit=True) as connection:
        INBOX.create_table(connection)
        yield connection


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
    with closing(Consumer(settings)) as first, closing(Consumer(settings)) as second:
        first.subscribe([topic])
        applied: list[bool] = []
        wait_for(lambda: read(first, database, applied) == RECORDS)
        assert applied == [True] * RECORDS
        second.subscribe([topic])
        again: list[bool] = []
        of_second: list[bool] = []

        def both() -> bool:
            read(first, database, again)
            return read(second, database, of_second) >= RECORDS // PARTITIONS

        wait_for(both)
    assert not any(again + of_second)


def read(consumer: Consumer, database: psycopg.Connection[Any], answers: list[bool]) -> int:
    """Read and apply; commit no offset; return how many records were read until now."""
    answers += apply(database, consumer.consume(RECORDS, timeout=0.1))
    return len(answers)


def test_what_a_share_group_delivers_again_has_no_second_effect(
    kafka_broker: EmbeddedKafka, topic: str, database: psycopg.Connection[Any]
) -> None:
    group = f"share-{uuid4()}"
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka_broker.bootstrap_servers,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
    }
    configure(kafka_broker.bootstrap_servers, group)
    with ShareConsumer(settings) as dying:
        dying.subscribe([topic])
        applied = apply(database, wait_for(lambda: dying.poll(timeout=0.5)))
    answers: list[tuple[int, bool]] = []
    with ShareConsumer(settings) as heir:
        heir.subscribe([topic])
        wait_for(lambda: share(heir, database, answers) == RECORDS)
    assert applied == [True] * len(applied)
    assert sorted(answers) == [(1, True)] * (RECORDS - len(applied)) + [(2, False)] * len(applied)


def share(
    consumer: ShareConsumer, database: psycopg.Connection[Any], answers: list[tuple[int, bool]]
) -> int:
    """Apply and accept records; return how many were read until now."""
    records = consumer.poll(timeout=0.5)
    deliveries = [record.delivery_count() or 0 for record in records]
    answers += zip(deliveries, apply(database, records), strict=True)
    for record in records:
        consumer.acknowledge(record, AcknowledgeType.ACCEPT)
    consumer.commit_sync(timeout=60.0)
    return len(answers)


def configure(bootstrap_servers: str, group: str) -> None:
    """Let a share group read from the beginning, and what is committed only."""
    wanted = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(timeout=60)
