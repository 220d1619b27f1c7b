"""The contract of a shard's producer and its manifests: the twin in memory and the real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol
from uuid import UUID, uuid4

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.errors import KafkaUnavailable, PublisherFenced
from outbox.kafka.client_config import (
    admin_client,
    consumer_config,
    producer_config,
)
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.manifest import PUBLISHED, START, Entry, Kind, Manifest, encode
from outbox.messages.record import Record
from outbox.relay.protocol.answers import DeliveryReport
from tests.contract.fixtures_memory_kafka import MemoryKafka, MemoryProgressLog, MemoryPublisher
from tests.fixtures_kafka import committed_records, make_topic

SHARD = 3
INSTALLATION = UUID(int=1)


class Broker(Protocol):
    """One broker, as the tests use it."""

    topic: str
    first: int
    """The first offset that a record or a manifest can have."""

    def publisher(self) -> KafkaPublisher: ...

    def progress_log(self) -> KafkaProgressLog: ...

    def committed(self, expected: int) -> list[Record]: ...


class InMemory:
    """The twin."""

    topic = "points-earned"
    first = 0

    def __init__(self) -> None:
        self._kafka = MemoryKafka()

    def publisher(self) -> KafkaPublisher:
        return MemoryPublisher(self._kafka, SHARD)

    def progress_log(self) -> KafkaProgressLog:
        return MemoryProgressLog(self._kafka, SHARD)

    def committed(self, expected: int) -> list[Record]:
        return self._kafka.committed(self.topic)


class RealKafka:
    """The real Kafka, with separate topics and a separate transactional id."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self.first = 0
        self.topic = make_topic(bootstrap_servers, partitions=1)
        self._progress = make_topic(bootstrap_servers, partitions=16)
        self._installation = f"contract-{uuid4()}"
        self._admin = admin_client(bootstrap_servers, {})

    def publisher(self) -> KafkaPublisher:
        config = partial(producer_config, self._servers, {})
        return KafkaPublisher(config, SHARD, self._progress)

    def progress_log(self) -> KafkaProgressLog:
        config = consumer_config(self._servers, {})
        return KafkaProgressLog(self._admin, config, SHARD, self._progress)

    def committed(self, expected: int) -> list[Record]:
        return committed_records(self._servers, self.topic, expected)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Yield each broker."""
    if request.param == "memory":
        yield InMemory()
    else:
        server: EmbeddedKafka = request.getfixturevalue("kafka_broker")
        yield RealKafka(server.bootstrap_servers)


def records(broker: Broker, *values: bytes) -> list[Record]:
    headers = (("outbox_message_id", b"1"), ("outbox_batch", b"3.1.0"))
    return [Record(broker.topic, b"key", value, None, headers) for value in values]


def manifest(batch_no: int = 1) -> Manifest:
    entries = (Entry(bytes(16), PUBLISHED),)
    return Manifest(
        installation=INSTALLATION,
        shard=SHARD,
        gen=1,
        kind=Kind.BATCH,
        batch_no=batch_no,
        prev_crc=0,
        after=START,
        to=START,
        entries=entries,
    )


def fenced(broker: Broker) -> KafkaPublisher:
    publisher = broker.publisher()
    publisher.fence(INSTALLATION)
    return publisher


def publish(publisher: KafkaPublisher, broker: Broker, *values: bytes, batch_no: int = 1) -> int:
    """Publish a whole batch; return its manifest's offset."""
    publisher.begin()
    delivery = send(publisher, broker, *values, batch_no=batch_no)
    assert (delivery.good, delivery.refused) == (len(values), None)
    publisher.commit()
    return delivery.offset


def send(
    publisher: KafkaPublisher,
    broker: Broker,
    *values: bytes,
    batch_no: int = 1,
    apart: bool = False,
) -> DeliveryReport:
    """Send a batch in the open transaction."""
    return publisher.publish(records(broker, *values), encode(manifest(batch_no)), apart=apart)


def test_records_are_seen_in_order_and_as_they_were_given(broker: Broker) -> None:
    publisher = fenced(broker)
    publish(publisher, broker, b"one", b"two", b"")
    assert [record._replace(partition=None) for record in broker.committed(3)] == records(
        broker, b"one", b"two", b""
    )
    publisher.drop()


def test_the_place_of_each_record_is_reported(broker: Broker) -> None:
    publisher = fenced(broker)
    publisher.begin()
    sent = send(publisher, broker, b"one", b"two")
    assert (list(sent.partitions), list(sent.offsets)) == (
        [0, 0],
        [broker.first, broker.first + 1],
    )
    publisher.drop()


def test_the_manifest_is_read_back_with_the_reported_offset(broker: Broker) -> None:
    publisher, log = fenced(broker), broker.progress_log()
    offset = publish(publisher, broker, b"one")
    start, end = log.bounds()
    assert (start, end > offset) == (broker.first, True)
    found, reached = log.read(start, end)
    assert ([(f.offset, f.manifest) for f in found], reached) == ([(offset, manifest())], True)
    publisher.drop()


def test_nothing_of_an_open_transaction_is_seen_and_the_next_fence_ends_it(broker: Broker) -> None:
    frozen, log = fenced(broker), broker.progress_log()
    frozen.begin()
    send(frozen, broker, b"lost")
    heir = fenced(broker)
    assert log.read(*log.bounds()) == ((), True)
    publish(heir, broker, b"kept")
    assert [record.value for record in broker.committed(1)] == [b"kept"]
    frozen.drop()
    heir.drop()


def test_a_fenced_handle_commits_nothing(broker: Broker) -> None:
    frozen = fenced(broker)
    frozen.begin()
    send(frozen, broker, b"lost")
    heir = fenced(broker)
    with pytest.raises(PublisherFenced):
        frozen.commit()
    publish(heir, broker, b"kept")
    assert [record.value for record in broker.committed(1)] == [b"kept"]
    frozen.drop()
    heir.drop()


def test_a_permanently_refused_record_is_named_and_no_manifest_lists_it(broker: Broker) -> None:
    publisher, log = fenced(broker), broker.progress_log()
    publisher.begin()
    delivery = send(publisher, broker, b"one", b"x" * 2_000_000, apart=True)
    assert delivery.refused is not None
    assert (delivery.refused.place, delivery.refused.error) == (1, "MSG_SIZE_TOO_LARGE")
    assert (delivery.good, delivery.offset) == (1, -1)
    heir = fenced(broker)
    offset = publish(heir, broker, b"kept")
    assert [found.offset for found in log.read(*log.bounds())[0]] == [offset]
    publisher.drop()
    heir.drop()


def test_a_refusal_is_only_counted_where_a_manifest_may_list_the_record(broker: Broker) -> None:
    publisher = fenced(broker)
    publisher.begin()
    delivery = send(publisher, broker, b"one", b"x" * 2_000_000)
    assert delivery.refused is None
    assert delivery.good < 2
    heir, log = fenced(broker), broker.progress_log()
    assert log.read(*log.bounds()) == ((), True)
    publish(heir, broker, b"kept")
    assert [record.value for record in broker.committed(1)] == [b"kept"]
    publisher.drop()
    heir.drop()


def test_records_and_manifest_may_travel_apart(broker: Broker) -> None:
    publisher, log = fenced(broker), broker.progress_log()
    publisher.begin()
    delivery = send(publisher, broker, b"one", b"two", apart=True)
    publisher.commit()
    assert (delivery.good, delivery.refused) == (2, None)
    assert [found.offset for found in log.read(*log.bounds())[0]] == [delivery.offset]
    assert [record.value for record in broker.committed(2)] == [b"one", b"two"]
    publisher.drop()


def test_a_dropped_handle_cannot_be_used(broker: Broker) -> None:
    publisher = fenced(broker)
    publisher.drop()
    with pytest.raises(KafkaUnavailable):
        publisher.begin()


def test_a_log_of_aborted_manifests_alone_is_read_to_its_end(broker: Broker) -> None:
    for _ in range(2):
        doomed = fenced(broker)
        doomed.begin()
        send(doomed, broker)
        doomed.drop()
    heir, log = fenced(broker), broker.progress_log()
    start, end = log.bounds()
    assert end >= 2
    assert log.read(start, end) == ((), True)
    heir.drop()


def test_the_topic_shows_its_partitions(broker: Broker) -> None:
    cluster = broker.progress_log().cluster()
    assert cluster.partitions == 16
    assert cluster.cluster_id
    assert cluster.topic_id
