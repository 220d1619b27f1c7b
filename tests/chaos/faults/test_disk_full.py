"""PostgreSQL's disk is full: what is acknowledged was stored, and the service recovers."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from chaos.faults.postgres import accepts
from chaos.servers.nodes import PostgresNode
from chaos.servers.server_thread import ServerThread
from devservers.errors import ServerFailed
from devservers.kafka import EmbeddedKafka
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.messages.message_id import parse_message_id
from tests.chaos.faults.fixtures_small_disk import NoSmallDisk, fill, make_room, small_disk
from tests.chaos.fixtures_live_service import LiveService, live_service
from tests.fixtures_databases import migrate
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

MEGABYTES = 200
REFUSALS = 5
MOST_CALLS = 2000
GROUP = "stock"


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[PostgresNode]:
    """Yield a server on a small separate disk."""
    with closing(ServerThread()) as server_thread:
        node = PostgresNode(tmp_path / "postgres", server_thread, settings={"max_wal_size": "32MB"})
        try:
            with small_disk(node.server.home, MEGABYTES):
                node.start()
                try:
                    node.make_database()
                    migrate(node.dsn())
                    yield node
                finally:
                    node.server.stop()
        except NoSmallDisk as error:
            pytest.skip(str(error))
        finally:
            assert not node.server.home.is_mount()


def prepare_until(service: LiveService, topic: str, status: int, calls: int) -> list[str]:
    """Prepare until this number of calls had that status; return the acknowledged ids."""
    acknowledged: list[str] = []
    for _ in range(MOST_CALLS):
        value = base64.b64encode(os.urandom(20_000)).decode()
        answer = service.prepare(GROUP, topic, value)
        assert answer.status_code in (201, 503), answer.text
        if answer.status_code == 201:
            acknowledged.append(answer.json()["message_id"])
        calls -= answer.status_code == status
        if not calls:
            return acknowledged
    raise AssertionError(f"status {status} did not come {MOST_CALLS} times")


def back(crowded: PostgresNode) -> bool:
    """Start the server if its full disk has ended it; return whether it takes connections."""
    if crowded.server.exit_code() is not None:
        with suppress(ServerFailed):
            crowded.start()
    return accepts(crowded.dsn())


def test_f11_a_full_disk_acknowledges_nothing_that_is_not_stored(
    crowded: PostgresNode, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    ensure_progress_topic(kafka_broker.bootstrap_servers, replication=1)
    topic = make_topic(kafka_broker.bootstrap_servers, partitions=1)
    home = crowded.server.home
    with live_service(crowded.dsn(), kafka_broker.bootstrap_servers, tmp_path) as service:
        service.put_group(GROUP, "http://127.0.0.1:9999/check", 3600)
        acknowledged = prepare_until(service, topic, 201, 5)
        fill(home)
        acknowledged += prepare_until(service, topic, 503, REFUSALS)
        make_room(home)
        wait_for(lambda: back(crowded), seconds=120)
        wait_for(lambda: service.prepare(GROUP, topic).status_code == 201, seconds=60)
        crowded.stop_immediate()
        crowded.start()
    with psycopg.connect(crowded.dsn()) as connection:
        rows = connection.execute("SELECT half_id FROM outbox.half_message").fetchall()
    assert {parse_message_id(each)[0] for each in acknowledged} <= {half for (half,) in rows}
