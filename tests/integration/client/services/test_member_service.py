"""The member service of the examples, as a process on a real broker and database."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer

from devservers.child import Child, Command
from devservers.kafka import EmbeddedKafka
from examples.member_service.points import create_tables
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

SECONDS = 60.0


def send(producer: Producer, topic: str, numbers: Iterable[int]) -> None:
    producer.begin_transaction()
    for number in numbers:
        member = f"m{number % 3}"
        value = json.dumps({"purchase_id": f"p{number}", "member": member, "points": 100})
        headers: list[tuple[str, str | bytes | None]] = [("outbox_message_id", b"id-%d" % number)]
        producer.produce(topic, value.encode(), member.encode(), headers=headers)
    producer.flush(SECONDS)


def test_only_committed_records_become_points_and_each_one_once(
    kafka_broker: EmbeddedKafka, local_database: str, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    topic = make_topic(servers, partitions=3)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    send(producer, topic, [*range(10), 3])
    producer.commit_transaction(SECONDS)
    send(producer, topic, range(100, 110))
    producer.abort_transaction(SECONDS)
    program = [sys.executable, "-m", "examples.member_service", "--bootstrap-servers", servers]
    command = Command(
        name="member",
        arguments=[*program, "--topic", topic],
        log=tmp_path / "member.log",
        environment={**os.environ, "MEMBER_DATABASE_URL": local_database},  # noqa: TID251
    )
    with psycopg.connect(local_database, autocommit=True) as database:
        create_tables(database)

        def points() -> dict[str, int]:
            return dict(database.execute("SELECT member, points FROM member_points").fetchall())

        member = Child(command)
        try:
            wait_for(lambda: sum(points().values()) >= 1000)
        finally:
            code = member.stop()
        assert points() == {"m0": 400, "m1": 300, "m2": 300}
    assert code == 0
