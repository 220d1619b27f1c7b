"""One of three brokers dies: the service continues without loss or duplicate (F6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from devservers.kafka_wire import active_controller
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.fixtures_kafka import committed_records
from tests.fixtures_waiting import wait_for
from tests.integration.failpoints.fixtures_node import Node

pytestmark = pytest.mark.deep

NODES = 3
CALL_SECONDS = 30.0
RECOVERY_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeBrokers:
    """A cluster, by node id."""

    nodes: dict[int, EmbeddedKafka]

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers."""
        return ",".join(node.bootstrap_servers for node in self.nodes.values())

    def replicated_topic(self) -> str:
        """Create a topic with one partition and a replica on each broker."""
        topic, admin = f"topic-{uuid4()}", self._admin()
        new = NewTopic(topic, num_partitions=1, replication_factor=NODES)
        admin.create_topics([new])[topic].result(timeout=CALL_SECONDS)
        wait_for(lambda: len(self.in_sync(topic)) == NODES, seconds=60)
        return topic

    def in_sync(self, topic: str) -> list[int]:
        """Return the in-sync brokers of a topic's only partition, in order."""
        known = self._admin().list_topics(topic, timeout=CALL_SECONDS).topics[topic]
        return sorted(known.partitions[0].isrs) if known.partitions else []

    def leader(self, topic: str) -> EmbeddedKafka:
        """Return the leader of the partition."""
        known = self._admin().list_topics(topic, timeout=CALL_SECONDS).topics[topic]
        return self.nodes[known.partitions[0].leader]

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[ThreeBrokers]:
    cluster = new_cluster(NODES)
    nodes = {
        node_id: EmbeddedKafka(tmp_path / f"kafka-{node_id}", cluster=cluster, node_id=node_id)
        for node_id in cluster.controllers
    }
    with ExitStack() as stack:
        for node in nodes.values():
            stack.callback(node.kill)
            node.launch()
        for node in nodes.values():
            node.wait_ready()
        yield ThreeBrokers(nodes=nodes)


def committed(node: Node, topic: str, value: str) -> None:
    """Prepare a half message and commit it."""
    body = {"producer_group": "g", "topic": topic, "value": value, "transaction_id": value}
    url = f"{node.url}/v1/half-messages"
    made = httpx2.post(url, json=body, timeout=CALL_SECONDS)
    assert made.status_code == 201, made.text
    ended = httpx2.post(
        f"{url}/{made.json()['message_id']}/end",
        json={"decision": "COMMIT"},
        timeout=CALL_SECONDS,
    )
    assert ended.status_code == 200, ended.text


def register(node: Node) -> bool:
    """Register the producer group once the API answers."""
    body = {"check_url": "http://127.0.0.1:65000/check", "transaction_timeout_seconds": 3600}
    try:
        answer = httpx2.put(f"{node.url}/v1/producer-groups/g", json=body, timeout=CALL_SECONDS)
    except httpx2.TransportError:
        return False
    assert answer.status_code in (200, 201, 503), answer.text
    return answer.status_code != 503


@pytest.mark.postgres
@pytest.mark.kafka
@pytest.mark.chaos
def test_f6_what_is_committed_while_one_of_three_brokers_is_dead_is_published_once(
    database_url: str, brokers: ThreeBrokers, tmp_path: Path
) -> None:
    bootstrap = brokers.bootstrap_servers
    ensure_progress_topic(bootstrap, replication=NODES)
    topic = brokers.replicated_topic()

    def visible() -> list[bytes | None]:
        return [record.value for record in committed_records(bootstrap, topic, 2)]

    with Node(database_url, bootstrap, tmp_path) as node:
        node.start()
        wait_for(lambda: register(node), seconds=60)
        committed(node, topic, "before")
        assert committed_records(bootstrap, topic, 1)
        dead = brokers.leader(topic)
        dead.kill()
        committed(node, topic, "meanwhile")
        wait_for(lambda: b"meanwhile" in visible(), seconds=RECOVERY_SECONDS)
        assert active_controller(next(each.port for each in brokers.nodes.values() if each.pid)) > 0
        dead.start()
        wait_for(lambda: len(brokers.in_sync(topic)) == NODES, seconds=RECOVERY_SECONDS)
        assert visible() == [b"before", b"meanwhile"]
