"""The member service of the examples, as a process on a real broker and database."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devservers.child import Child, Command
from devservers.kafka import EmbeddedKafka
from examples.demo.poller import wait_until
from examples.member_service.points import create_tables, grant

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

TOPIC = "points-earned-test"
SECONDS = 60.0
ALL_POINTS = {"m0": 400, "m1": 300, "m2": 300}


def make_record(number: int) -> Message:
    member = f"m{number % 3}"
    value = json.dumps({"purchase_id": f"p{number}", "member": member, "points": 100}).encode()
    headers: list[tuple[str, str | bytes | None]] = [("outbox_message_id", b"id-%d" % number)]
    return Message(key=member.encode(), value=value, headers=headers)


def points(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT member, points FROM member_points").fetchall())


def send(producer: Producer, topic: str, number: int) -> None:
    record = make_record(number)
    producer.produce(topic, record.value(), record.key(), headers=record.headers())


def publish(bootstrap_servers: str, topic: str, numbers: Sequence[int]) -> None:
    """Send events in a transaction, and ten in an aborted one."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "test-points"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for number in numbers:
        send(producer, topic, number)
    producer.commit_transaction(SECONDS)
    producer.begin_transaction()
    for number in range(100, 110):
        send(producer, topic, number)
    producer.flush(SECONDS)
    producer.abort_transaction(SECONDS)


def make_ready(servers: str, database_url: str, topic: str) -> None:
    """Create the topic and the tables; publish ten events and repeat one of them."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(SECONDS)
    publish(servers, topic, [*range(10), 3])
    with psycopg.connect(database_url, autocommit=True) as connection:
        create_tables(connection)


def member_of(servers: str, database_url: str, topic: str, log: Path) -> Child:
    """Start a member service."""
    arguments = [sys.executable, "-m", "examples.member_service", "--bootstrap-servers", servers]
    command = Command(
        name="member",
        arguments=[*arguments, "--topic", topic],
        log=log,
        environment={**os.environ, "MEMBER_DATABASE_URL": database_url},  # noqa: TID251
    )
    return Child(command)


def granted_all(url: str) -> bool:
    return sum(points(url).values()) >= 1000


def test_only_committed_records_become_points_and_each_one_once(
    kafka_broker: EmbeddedKafka, local_database: str, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    make_ready(servers, local_database, TOPIC)
    member = member_of(servers, local_database, TOPIC, tmp_path / "member.log")
    try:
        wait_until("granted", lambda: granted_all(local_database), SECONDS)
    finally:
        code = member.stop()
    assert points(local_database) == ALL_POINTS
    assert code == 0


def offsets_committed(servers: str, topic: str) -> list[int]:
    """Return the offsets that the member service has committed, of all partitions."""
    with closing(Consumer({"bootstrap.servers": servers, "group.id": "member-service"})) as reader:
        asked = [TopicPartition(topic, partition) for partition in range(3)]
        return [
            found.offset for found in reader.committed(asked, timeout=SECONDS) if found.offset >= 0
        ]


@pytest.mark.deep
def test_a24_members_killed_before_and_after_their_offset_is_committed_grant_each_event_once(
    kafka_broker: EmbeddedKafka, local_database: str, tmp_path: Path
) -> None:
    """The first one leaves points in PostgreSQL, and no offset in Kafka."""
    servers, topic = kafka_broker.bootstrap_servers, f"{TOPIC}-killed"
    make_ready(servers, local_database, topic)
    with psycopg.connect(local_database, autocommit=True) as connection:
        grant(connection, [make_record(number) for number in range(5)])
    second = member_of(servers, local_database, topic, tmp_path / "second.log")
    try:
        wait_until("granted", lambda: granted_all(local_database), SECONDS)
        wait_until(
            "the offsets are committed", lambda: bool(offsets_committed(servers, topic)), SECONDS
        )
    finally:
        assert second.kill() == -signal.SIGKILL
    assert points(local_database) == ALL_POINTS
    publish(servers, topic, [*range(10), 10])
    third = member_of(servers, local_database, topic, tmp_path / "third.log")
    try:
        wait_until("granted", lambda: points(local_database) != ALL_POINTS, SECONDS)
    finally:
        third.stop()
    assert points(local_database) == ALL_POINTS | {"m1": 400}
