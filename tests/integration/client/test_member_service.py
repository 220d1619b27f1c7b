"""The member service of the examples, as the process it is, on a real broker and database."""

import json
import os
import sys
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cli.embedded.child import Child, Command
from cli.embedded.kafka import EmbeddedKafka
from examples.demo.waiting import wait_until
from examples.member_service.points import PointsEarned, create_tables, grant

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

TOPIC = "points-earned-test"
SECONDS = 60.0


def make_event(number: int) -> PointsEarned:
    return PointsEarned(f"id-{number}", f"p{number}", f"m{number % 3}", 100)


def points(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT member, points FROM member_points").fetchall())


def test_an_event_that_comes_twice_grants_once(local_database: str) -> None:
    with psycopg.connect(local_database, autocommit=True) as connection:
        create_tables(connection)
        grant(connection, [make_event(1), make_event(1), make_event(4)])
        grant(connection, [make_event(4), make_event(2)])
    assert points(local_database) == {"m1": 200, "m2": 100}


def send(producer: Producer, event: PointsEarned) -> None:
    value = {"purchase_id": event.purchase_id, "member": event.member, "points": event.points}
    headers: list[tuple[str, str | bytes | None]] = [
        ("outbox_message_id", event.message_id.encode())
    ]
    producer.produce(TOPIC, json.dumps(value).encode(), event.member.encode(), headers=headers)


def publish(bootstrap_servers: str) -> None:
    """Send ten events and a repeat of one in a transaction, and ten that are taken back."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "test-points"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for number in [*range(10), 3]:
        send(producer, make_event(number))
    producer.commit_transaction(SECONDS)
    producer.begin_transaction()
    for number in range(100, 110):
        send(producer, make_event(number))
    producer.flush(SECONDS)
    producer.abort_transaction(SECONDS)


def test_only_committed_records_become_points_and_each_one_once(
    kafka_broker: EmbeddedKafka, local_database: str, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(SECONDS)
    publish(servers)
    arguments = [sys.executable, "-m", "examples.member_service", "--bootstrap-servers", servers]
    command = Command(
        name="member",
        arguments=[*arguments, "--topic", TOPIC],
        log=tmp_path / "member.log",
        environment={**os.environ, "MEMBER_DATABASE_URL": local_database},  # noqa: TID251
    )
    with psycopg.connect(local_database, autocommit=True) as connection:
        create_tables(connection)
    member = Child(command)
    try:
        wait_until("granted", lambda: sum(points(local_database).values()) >= 1000, SECONDS)
    finally:
        code = member.stop()
    assert points(local_database) == {"m0": 400, "m1": 300, "m2": 300}
    assert code == 0
