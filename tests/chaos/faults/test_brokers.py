"""One of three brokers dies: the service continues without loss or duplicate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.chaos.fixtures_live_service import live_service
from tests.fixtures_kafka import committed_records
from tests.fixtures_separate_broker import running_nodes
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

NODES = 3
CALL_SECONDS = 30.0
RECOVERY_SECONDS = 120.0


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[int, EmbeddedKafka]]:
    """Yield three running brokers by their node ids."""
    cluster = new_cluster(NODES)
    nodes = {
        node: EmbeddedKafka(tmp_path / f"kafka-{node}", cluster=cluster, node_id=node)
        for node in cluster.controllers
    }
    with running_nodes(nodes.values()):
        yield nodes


def test_f6_what_is_committed_while_one_of_three_brokers_is_dead_is_published_once(
    database_url: str, brokers: dict[int, EmbeddedKafka], tmp_path: Path
) -> None:
    servers = ",".join(broker.bootstrap_servers for broker in brokers.values())
    admin, topic = AdminClient({"bootstrap.servers": servers, "log_level": 0}), f"topic-{uuid4()}"
    ensure_progress_topic(servers, replication=NODES)
    admin.create_topics([NewTopic(topic, 1, NODES)])[topic].result(timeout=CALL_SECONDS)

    def in_sync() -> int:
        partitions = admin.list_topics(topic, CALL_SECONDS).topics[topic].partitions
        return len(partitions[0].isrs) if partitions else 0  # a broker may not know them yet

    def visible() -> list[bytes | None]:
        return [record.value for record in committed_records(servers, topic, 2)]

    wait_for(lambda: in_sync() == NODES)
    with live_service(database_url, servers, tmp_path) as service:
        service.put_group("g", "http://127.0.0.1:65000/check", 3600)
        service.commit(service.prepared("g", topic, "before"))
        assert committed_records(servers, topic, 1)
        leader = admin.list_topics(topic, CALL_SECONDS).topics[topic].partitions[0].leader
        brokers[leader].kill()
        service.commit(service.prepared("g", topic, "meanwhile"))
        wait_for(lambda: b"meanwhile" in visible(), seconds=RECOVERY_SECONDS)
        brokers[leader].start()
        wait_for(lambda: in_sync() == NODES, seconds=RECOVERY_SECONDS)
        assert visible() == [b"before", b"meanwhile"]
