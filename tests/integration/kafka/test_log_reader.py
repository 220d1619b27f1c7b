"""The audit's reads from a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import CDLL, c_char_p, c_void_p
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer, TopicPartition, cimpl
from confluent_kafka.admin import AdminClient

from devservers.kafka import EmbeddedKafka
from outbox.clock import SystemClock
from outbox.errors import KafkaUnavailable, RecordUnread
from outbox.kafka.log_reader import KafkaLogReader
from outbox.reconciliation.log import LogEnd, Offsets, Partition, TopicFacts
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.kafka


@pytest.fixture
def facts(kafka_broker: EmbeddedKafka) -> KafkaLogReader:
    """The facts of the suite's broker."""
    return KafkaLogReader(kafka_broker.bootstrap_servers)


@pytest.fixture
def topic(kafka_broker: EmbeddedKafka) -> str:
    """A new topic with one partition."""
    return make_topic(kafka_broker.bootstrap_servers, partitions=1)


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


def test_an_open_transaction_holds_the_stable_end_back(
    facts: KafkaLogReader, topic: str, producer: Producer
) -> None:
    partition = Partition(topic, 0)
    producer.produce(topic, b"one")
    producer.flush(30)
    stable = facts.offsets([partition], LogEnd.LAST_STABLE)
    high = facts.offsets([partition], LogEnd.HIGH_WATERMARK)
    producer.abort_transaction(30)
    assert (stable.offsets, high.offsets) == ({partition: 0}, {partition: 1})


def test_a_record_is_read_by_its_offset_a_gone_one_is_left_out_and_the_end_has_none(
    facts: KafkaLogReader, topic: str, producer: Producer, kafka_broker: EmbeddedKafka
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
    marker = 3
    assert facts.next_records({partition: 0}) == {}
    assert facts.next_records({partition: 2}) == {partition: record}
    assert facts.next_records({partition: marker}) == {partition: None}
    assert facts.offsets([partition], LogEnd.START).offsets == {partition: 1}


def test_a_time_selects_the_first_record_of_then_or_later_and_none_if_all_are_older(
    facts: KafkaLogReader, topic: str, producer: Producer
) -> None:
    partition = Partition(topic, 0)
    for second in (1, 2, 4):
        producer.produce(topic, b"", timestamp=second * 1000)
    producer.commit_transaction(30)
    wait_for(lambda: facts.offsets([partition], LogEnd.LAST_STABLE).offsets == {partition: 4})
    found = [facts.offsets_since([partition], datetime.fromtimestamp(s, UTC)) for s in (2, 3)]
    assert [each.offsets for each in found] == [{partition: 1}, {partition: 2}]
    tomorrow = SystemClock().now() + timedelta(days=1)
    assert facts.offsets_since([partition], tomorrow) == Offsets(offsets={})
    with pytest.raises(KafkaUnavailable):
        facts.offsets_since([Partition(topic, 7)], tomorrow)


def test_a_header_name_that_is_not_utf_8_is_a_named_error(
    facts: KafkaLogReader, topic: str, kafka_broker: EmbeddedKafka
) -> None:
    library = CDLL(cimpl.__file__)  # The Python client refuses to write such a name.
    library.rd_kafka_new.restype = c_void_p
    sender = c_void_p(library.rd_kafka_new(0, None, None, 0))
    library.rd_kafka_brokers_add(sender, kafka_broker.bootstrap_servers.encode())
    named = (1, c_char_p(topic.encode()), 9, c_char_p(b"\xff"), c_char_p(b""), c_void_p(0), 0)
    library.rd_kafka_producev(sender, *named)
    assert library.rd_kafka_flush(sender, 30_000) == 0
    library.rd_kafka_destroy(sender)
    partition = Partition(topic, 0)
    with pytest.raises(RecordUnread, match="not UTF-8"):
        list(facts.between({partition: (0, 1)}))
    assert facts.next_records({partition: 0}) == {}


def test_a_topic_is_described_and_has_another_id_after_it_is_recreated(
    kafka_broker: EmbeddedKafka, facts: KafkaLogReader, topic: str
) -> None:
    known = facts.describe([topic, "nowhere"])
    assert [(n, isinstance(f, TopicFacts)) for n, f in known.items()] == [(topic, True)]
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(60)
    wait_for(lambda: not facts.describe([topic]))
    settings = {"cleanup.policy": "compact,delete"}
    make_topic(kafka_broker.bootstrap_servers, partitions=2, name=topic, config=settings)
    again = wait_for(lambda: facts.describe([topic]))[topic]
    before = known[topic]
    assert isinstance(again, TopicFacts)
    assert isinstance(before, TopicFacts)
    assert (before.partitions, before.compacts) == (1, False)
    assert (again.partitions, again.compacts) == (2, True)
    assert again.id != before.id
