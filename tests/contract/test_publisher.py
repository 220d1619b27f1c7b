"""The contract of a shard's producer and its manifests, on a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import UUID

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import (
    admin_client,
    consumer_config,
    producer_config,
)
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.manifest import PUBLISHED, START, Entry, Kind, Manifest, decode, encode
from outbox.messages.record import Record
from outbox.relay.protocol.answers import DeliveryReport
from tests.fixtures_kafka import committed_records, make_topic

pytestmark = pytest.mark.kafka

SHARD = 3
INSTALLATION = UUID(int=1)


class Broker:
    """Kafka, with separate topics and a separate transactional id."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self.opened: list[KafkaPublisher] = []
        self.topic = make_topic(bootstrap_servers, partitions=1)
        self._progress = make_topic(bootstrap_servers, partitions=16)
        self._admin = admin_client(bootstrap_servers, {})

    def fenced(self) -> KafkaPublisher:
        """Return a new producer of the shard, which has fenced those before it."""
        config = partial(producer_config, self._servers, {})
        publisher = KafkaPublisher(config, SHARD, self._progress)
        self.opened.append(publisher)
        publisher.fence(INSTALLATION)
        return publisher

    def progress_log(self) -> KafkaProgressLog:
        config = consumer_config(self._servers, {})
        return KafkaProgressLog(self._admin, config, SHARD, self._progress)

    def committed(self, expected: int) -> list[Record]:
        return committed_records(self._servers, self.topic, expected)


@pytest.fixture
def broker(kafka_broker: EmbeddedKafka) -> Iterator[Broker]:
    """Yield a broker with topics that no other test uses."""
    broker = Broker(kafka_broker.bootstrap_servers)
    yield broker
    for publisher in broker.opened:
        publisher.drop()


def records(broker: Broker, *values: bytes) -> list[Record]:
    headers = (("outbox_message_id", b"1"), ("outbox_batch", b"3.1.0"))
    return [Record(broker.topic, b"key", value, None, headers) for value in values]


MANIFEST = encode(
    Manifest(
        installation=INSTALLATION,
        shard=SHARD,
        gen=1,
        kind=Kind.BATCH,
        batch_no=1,
        prev_crc=0,
        after=START,
        to=START,
        entries=(Entry(bytes(16), PUBLISHED),),
    )
)


def publish(publisher: KafkaPublisher, broker: Broker, *values: bytes) -> int:
    """Publish a whole batch; return its manifest's offset."""
    publisher.begin()
    delivery = send(publisher, broker, *values)
    assert (delivery.good, delivery.refused) == (len(values), None)
    publisher.commit()
    return delivery.offset


def send(
    publisher: KafkaPublisher, broker: Broker, *values: bytes, apart: bool = False
) -> DeliveryReport:
    """Send a batch in the open transaction."""
    return publisher.publish(records(broker, *values), MANIFEST, apart=apart)


def test_the_place_of_each_record_is_reported(broker: Broker) -> None:
    publisher = broker.fenced()
    publisher.begin()
    sent = send(publisher, broker, b"one", b"two")
    assert (list(sent.partitions), list(sent.offsets)) == ([0, 0], [0, 1])


def test_the_manifest_is_read_back_with_the_reported_offset(broker: Broker) -> None:
    publisher, log = broker.fenced(), broker.progress_log()
    offset = publish(publisher, broker, b"one")
    found, reached = log.read(*log.bounds())
    assert ([(each.offset, each.manifest) for each in found], reached) == (
        [(offset, decode(MANIFEST))],
        True,
    )


def test_nothing_of_an_open_transaction_is_seen_and_the_next_fence_ends_it(broker: Broker) -> None:
    frozen, log = broker.fenced(), broker.progress_log()
    frozen.begin()
    send(frozen, broker, b"lost")
    heir = broker.fenced()
    assert log.read(*log.bounds()) == ((), True)
    publish(heir, broker, b"kept")
    assert [record.value for record in broker.committed(1)] == [b"kept"]


def test_a_permanently_refused_record_is_named_and_no_manifest_lists_it(broker: Broker) -> None:
    publisher, log = broker.fenced(), broker.progress_log()
    publisher.begin()
    delivery = send(publisher, broker, b"one", b"x" * 2_000_000, apart=True)
    assert delivery.refused is not None
    assert (delivery.refused.place, delivery.refused.error) == (1, "MSG_SIZE_TOO_LARGE")
    assert (delivery.good, delivery.offset) == (1, -1)
    heir = broker.fenced()
    offset = publish(heir, broker, b"kept")
    assert [found.offset for found in log.read(*log.bounds())[0]] == [offset]


def test_a_refusal_is_only_counted_where_a_manifest_may_list_the_record(broker: Broker) -> None:
    publisher = broker.fenced()
    publisher.begin()
    delivery = send(publisher, broker, b"one", b"x" * 2_000_000)
    assert delivery.refused is None
    assert delivery.good < 2
    heir, log = broker.fenced(), broker.progress_log()
    assert log.read(*log.bounds()) == ((), True)
    publish(heir, broker, b"kept")
    assert [record.value for record in broker.committed(1)] == [b"kept"]


def test_a_dropped_handle_cannot_be_used(broker: Broker) -> None:
    publisher = broker.fenced()
    publisher.drop()
    with pytest.raises(KafkaUnavailable):
        publisher.begin()


def test_a_log_of_aborted_manifests_alone_is_read_to_its_end(broker: Broker) -> None:
    for _ in range(2):
        doomed = broker.fenced()
        doomed.begin()
        send(doomed, broker)
    broker.fenced()
    log = broker.progress_log()
    start, end = log.bounds()
    assert end >= 2
    assert log.read(start, end) == ((), True)
