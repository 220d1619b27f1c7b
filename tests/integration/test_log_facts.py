"""What the reconciliation asks a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cli.embedded.kafka import EmbeddedKafka
from outbox.errors import KafkaUnavailable
from outbox.publication.log_facts import KafkaLogFacts
from outbox.reconciliation import LogEnd, Partition

pytestmark = pytest.mark.kafka

_NUMBERS = count(1)


@pytest.fixture
def facts(kafka_broker: EmbeddedKafka) -> KafkaLogFacts:
    """The facts of the suite's broker."""
    return KafkaLogFacts(kafka_broker.bootstrap_servers)


@pytest.fixture
def topic(kafka_broker: EmbeddedKafka) -> str:
    """A fresh topic of one partition."""
    name = f"facts-{next(_NUMBERS)}"
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
    return name


@pytest.fixture
def producer(kafka_broker: EmbeddedKafka, topic: str) -> Iterator[Producer]:
    """A producer inside a transaction that the test ends."""
    opened = Producer(
        {"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": topic}
    )
    opened.init_transactions(30)
    opened.begin_transaction()
    yield opened
    opened.flush(5)


def test_topics_that_do_not_exist_have_no_partition(facts: KafkaLogFacts, topic: str) -> None:
    assert facts.partitions([topic, "nowhere"]) == [Partition(topic, 0)]
    assert facts.partitions([]) == []


def test_an_open_transaction_holds_the_stable_end_back(
    facts: KafkaLogFacts, topic: str, producer: Producer
) -> None:
    partition = Partition(topic, 0)
    producer.produce(topic, b"one")
    producer.flush(30)
    stable = facts.offsets([partition], LogEnd.LAST_STABLE)
    high = facts.offsets([partition], LogEnd.HIGH_WATERMARK)
    producer.abort_transaction(30)
    assert (stable.offsets, high.offsets) == ({partition: 0}, {partition: 1})


def test_a_record_is_read_again_by_its_offset_and_a_gone_one_is_left_out(
    facts: KafkaLogFacts, topic: str, producer: Producer, kafka_broker: EmbeddedKafka
) -> None:
    partition = Partition(topic, 0)
    for number in range(3):
        producer.produce(topic, f"v{number}", "k", headers=[("a", b"1"), ("b", None)])
    producer.commit_transaction(30)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    deleted = TopicPartition(topic, 0, 1)
    admin.delete_records([deleted])[deleted].result(60)
    (record,) = facts.records([(partition, 0), (partition, 2)])
    assert (record.offset, record.key, record.value) == (2, b"k", b"v2")
    assert record.headers == (("a", b"1"), ("b", None))
    assert facts.offsets([partition], LogEnd.START).offsets == {partition: 1}


def test_a_broker_that_is_away_is_told_as_such() -> None:
    with pytest.raises(KafkaUnavailable):
        KafkaLogFacts("127.0.0.1:1").partitions(["points"])
