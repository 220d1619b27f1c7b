"""Brokers that may die, beside a first one that is the controller and coordinates transactions.

A data topic with all its replicas on the mortal brokers has no leader while they are down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from outbox.kafka.log_reader import KafkaLogReader
from outbox.reconciliation.log import LogEnd, Partition
from tests.fixtures_waiting import wait_for

CALL_SECONDS = 30.0
LEADER_SECONDS = 90.0
READY_SECONDS = 180.0
COORDINATOR = 1
TRANSACTIONS = "__transaction_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class MortalBrokers:
    """The brokers of one release."""

    release: str
    coordinator: EmbeddedKafka
    mortals: Sequence[EmbeddedKafka]

    @property
    def bootstrap_servers(self) -> str:
        """Return the address of the broker that stays."""
        return self.coordinator.bootstrap_servers

    def mortal_topics(self, count: int) -> list[str]:
        """Create topics of one partition with a replica on each mortal broker."""
        names = [f"topic-{uuid4()}" for _ in range(count)]
        self._create(names, [each.node_id for each in self.mortals])
        return names

    def kill(self, topics: Sequence[str], *, await_leaderless: bool) -> None:
        """Kill the mortal brokers; return at once, or when their partitions have no leader."""
        for broker in self.mortals:
            broker.kill()
        if await_leaderless:
            wait_for(lambda: self._leaders(topics) == {-1}, seconds=LEADER_SECONDS)

    def restart(self, topics: Sequence[str]) -> None:
        """Start the mortal brokers; return when the partitions have leaders again."""
        for broker in self.mortals:
            broker.launch()
        for broker in self.mortals:
            broker.wait_ready(READY_SECONDS)
        wait_for(lambda: -1 not in self._leaders(topics), seconds=LEADER_SECONDS)

    def behind(self, topics: Sequence[str]) -> set[str]:
        """Return the topics whose last stable offset is behind the high watermark."""
        log = KafkaLogReader(self.bootstrap_servers)
        partitions = [Partition(name, 0) for name in topics]
        stable = log.offsets(partitions, LogEnd.LAST_STABLE)
        ends = log.offsets(partitions, LogEnd.HIGH_WATERMARK)
        assert not {**stable.errors, **ends.errors}
        return {at.topic for at in partitions if stable.offsets[at] < ends.offsets[at]}

    def values(self, topic: str, isolation: str = "read_committed") -> list[bytes]:
        """Return the values that a new consumer of this isolation reads up to the end."""
        config = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        consumer = Consumer(config)
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            return list(_values(consumer))
        finally:
            consumer.close()

    def prepare(self) -> None:
        """Create the topic of the transactions on the first broker."""
        compacted = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
        self._create([TRANSACTIONS], [COORDINATOR], partitions=4, config=compacted)

    def _create(
        self, names: Sequence[str], replicas: list[int], partitions: int = 1, **given: Any
    ) -> None:
        """Create topics with these replicas of every partition; return when they have leaders."""
        new = [
            NewTopic(name, partitions, replica_assignment=[replicas] * partitions, **given)
            for name in names
        ]
        admin = self._admin()
        for made in admin.create_topics(new).values():
            made.result(timeout=CALL_SECONDS)
        wait_for(lambda: -1 not in self._leaders(names), seconds=LEADER_SECONDS)

    def _leaders(self, topics: Sequence[str]) -> set[int]:
        known = self._admin().list_topics(timeout=CALL_SECONDS).topics
        if not set(topics) <= set(known):
            return {-1}
        return {part.leader for name in topics for part in known[name].partitions.values()}

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})


def _values(consumer: Consumer) -> Iterator[bytes]:
    """Yield values up to the end of the log, or of what this isolation level may read."""
    while True:
        message = consumer.poll(CALL_SECONDS)
        assert message is not None, "the partition does not answer"
        error = message.error()
        if error is None:
            value = message.value()
            yield value if isinstance(value, bytes) else b""
        elif error.code() == KafkaError._PARTITION_EOF:
            return


@contextmanager
def mortal_brokers(release: str, folder: Path, mortals: int = 1) -> Iterator[MortalBrokers]:
    """Run a coordinator and some mortal brokers for the block. Raises ArtifactsMissing."""
    cluster = new_cluster(1 + mortals, controllers=1)
    settings = {"transaction.state.log.min.isr": "1"}
    with ExitStack() as stack:
        nodes = [
            EmbeddedKafka(
                folder / f"kafka-{node}",
                cluster=cluster,
                node_id=node,
                release=release,
                settings=settings,
            )
            for node in range(COORDINATOR, 2 + mortals)
        ]
        for node in nodes:
            stack.callback(node.erase)
            stack.callback(node.kill)
            node.launch()
        for node in nodes:
            node.wait_ready(READY_SECONDS)
        brokers = MortalBrokers(release=release, coordinator=nodes[0], mortals=nodes[1:])
        brokers.prepare()
        yield brokers
