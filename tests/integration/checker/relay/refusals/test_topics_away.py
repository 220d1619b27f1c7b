"""A topic that takes no records, because its brokers are away, holds back its own messages only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from checker.relay.shard_relay import ShardRelay
from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from outbox.kafka import ready_topics
from outbox.kafka.client_config import producer_config
from outbox.kafka.publisher import KafkaPublisher
from outbox.kafka.ready_topics import TAKES_NO_RECORDS
from outbox.kafka.topics import read_topics
from outbox.messages.message_id import SHARDS
from outbox.relay.protocol.state import number_of
from tests.fixtures_kafka import committed_records
from tests.fixtures_separate_broker import running_nodes
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_forbidden_topic import HELD, commit_to
from tests.integration.checker.relay.refusals.fixtures_refused_records import due_now, open_rows

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

VALUES = [b"before", b"1", b"2"]
STAYS, GOES = 1, 2
"""The broker that is also the controller, and the one that a test stops."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[int, EmbeddedKafka]]:
    """Yield two running brokers by their node ids."""
    cluster, folder = new_cluster(2, controllers=1), tmp_path_factory.mktemp("two")
    nodes = {
        node: EmbeddedKafka(folder / f"kafka-{node}", cluster=cluster, node_id=node)
        for node in (STAYS, GOES)
    }
    with running_nodes(nodes.values()):
        yield nodes


@pytest.fixture
def kafka_broker(
    brokers: Mapping[int, EmbeddedKafka], monkeypatch: pytest.MonkeyPatch
) -> EmbeddedKafka:
    """Return the broker that stays, in the place of the shared one; look before each batch."""
    monkeypatch.setattr(ready_topics, "LOOK_SECONDS", 0.0)
    return brokers[STAYS]


def topic_on(servers: str, *nodes: int, partitions: int = 1, in_sync: int = 1) -> str:
    """Create a topic with its replicas on these brokers; return once each is in sync."""
    name, admin = f"topic-{uuid4()}", AdminClient({"bootstrap.servers": servers, "log_level": 0})
    new = NewTopic(
        name,
        num_partitions=partitions,
        replica_assignment=[list(nodes)] * partitions,
        config={"min.insync.replicas": str(in_sync)},
    )
    admin.create_topics([new])[name].result(timeout=60)
    wait_for(lambda: takes_records(servers, name))
    return name


def takes_records(servers: str, topic: str) -> bool:
    """Return whether a topic takes records, as the broker that stays says."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    seen = read_topics(admin, [topic]).get(topic)
    return seen is not None and seen.takes_records


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_f15_topics_that_take_no_records_are_held_and_all_others_flow(
    world: RelayWorld, brokers: Mapping[int, EmbeddedKafka], ending: str
) -> None:
    servers = world.bootstrap_servers
    world.progress_topic = topic_on(servers, STAYS, partitions=SHARDS)
    world.topic = topic_on(servers, STAYS)
    away = [topic_on(servers, GOES)]
    if ending == "stop":  # After a kill the other replica counts as in sync for some seconds.
        away.append(topic_on(servers, STAYS, GOES, in_sync=2))
    relay = world.relay()
    publish_everywhere(world, relay, away, b"before")
    for topic in (world.topic, *away):
        assert committed_records(servers, topic, 1)
    getattr(brokers[GOES], ending)()
    for number in (b"1", b"2"):
        publish_everywhere(world, relay, away, number)
    assert world.values(3) == VALUES
    rows = world.connection.execute(HELD, (away,)).fetchall()
    assert rows.count((True, TAKES_NO_RECORDS)) == len(away)
    assert len(rows) == 2 * len(away)
    brokers[GOES].start()
    wait_for(lambda: all(takes_records(servers, topic) for topic in away))
    release(world, relay)
    for topic in away:
        assert [record.value for record in committed_records(servers, topic, 3)] == VALUES


def publish_everywhere(
    world: RelayWorld, relay: ShardRelay, away: Sequence[str], value: bytes
) -> None:
    """Commit a message for each topic, and let the relay publish what it can."""
    for topic in away:
        commit_to(world, topic, value)
    world.commit_values(value)
    drain(relay)


def release(world: RelayWorld, relay: ShardRelay) -> None:
    """Let the relay retry until nothing is held."""

    def freed() -> bool:
        due_now(world)
        drain(relay)
        return open_rows(world) == 0

    wait_for(freed)


class LosingPublisher(KafkaPublisher):
    """Loses a broker in a transaction that writes to it."""

    lost: EmbeddedKafka | None = None

    def commit(self) -> None:
        """Lose the broker after it has acknowledged the records, and commit."""
        lost, self.lost = self.lost, None
        if lost is not None:
            lost.kill()
        super().commit()


def test_f15_a_topic_that_is_lost_while_the_shard_writes_to_it_is_held_and_all_others_flow(
    world: RelayWorld, brokers: Mapping[int, EmbeddedKafka]
) -> None:
    """Kafka cannot end the transaction: its marker is due on a broker that is away."""
    servers = world.bootstrap_servers
    world.progress_topic = topic_on(servers, STAYS, partitions=SHARDS)
    world.topic, away = topic_on(servers, STAYS), topic_on(servers, GOES)
    relay = world.relay()
    publisher = LosingPublisher(partial(producer_config, servers, {}), SHARD, world.progress_topic)
    relay._executor._publisher = publisher
    publish_everywhere(world, relay, [away], b"before")
    publisher.lost = brokers[GOES]
    for number in (b"1", b"2"):
        publish_everywhere(world, relay, [away], number)
    assert world.values(3) == VALUES
    stored = "SELECT gen FROM outbox.progress WHERE name = %s"
    assert number_of(world.one(stored, f"relay:{SHARD}")) >= 1
    brokers[GOES].start()
    wait_for(lambda: takes_records(servers, away))
    release(world, relay)
    assert [record.value for record in committed_records(servers, away, 3)] == VALUES


def test_f15_nothing_is_held_while_the_manifests_are_away_too(
    world: RelayWorld, brokers: Mapping[int, EmbeddedKafka], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready_topics, "DELIVERY_SECONDS", 0.0)
    servers = world.bootstrap_servers
    world.progress_topic = topic_on(servers, GOES, partitions=SHARDS)
    world.topic = topic_on(servers, GOES)
    relay = world.relay()
    drain(relay)
    brokers[GOES].stop()
    world.commit_values(b"1")
    for _ in range(3):
        relay.run_once()
    assert open_rows(world) == 0
    brokers[GOES].start()
    drain(relay)
    assert world.values(1) == [b"1"]
