"""Reads from the data topics the producers of records that PostgreSQL has lost.

Reading starts one minute before the manifest that lists the first of them. Records have
PostgreSQL's time; a manifest's records are at most one transaction older. If that manifest is gone,
or does not list them, the topics are read from their start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from outbox.errors import InvalidManifest, InvalidMessageId, KafkaUnavailable
from outbox.kafka.batch_scan import all_of, read_to_ends
from outbox.kafka.client_config import REQUEST_SECONDS, consumer_config
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.permission import next_event
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.manifest import decode
from outbox.messages.message_id import HalfId, Nonce, message_id_bytes, parse_message_id
from outbox.messages.record import MESSAGE_ID, PRODUCER_GROUP, TRANSACTION_ID
from outbox.reconciliation.log import LogEnd, Partition
from outbox.relay.ports import RecordName, UnnamedRecord

EARLIER_MS: Final = 60_000
"""Longer than the longest transaction of the relay."""
START_MS: Final = 0


class KafkaRecordNames:
    """The RecordNames of one cluster; only tests change ``progress_topic``."""

    def __init__(
        self,
        bootstrap_servers: str,
        kafka_config: Mapping[str, Any],
        progress_topic: str = PROGRESS_TOPIC,
    ) -> None:
        self._facts = KafkaLogReader(bootstrap_servers, kafka_config)
        self._config = consumer_config(bootstrap_servers, kafka_config)
        self._progress_topic = progress_topic

    def read(self, sought: Sequence[UnnamedRecord], topics: Sequence[str]) -> Sequence[RecordName]:
        """Return the names of the records that the topics still have; see RecordNames."""
        wanted = {(each.half_id, each.nonce) for each in sought}
        found: dict[tuple[HalfId, Nonce], RecordName] = {}
        with _translated(), closing(Consumer(self._config)) as consumer:
            since_ms = self._since(consumer, sought)
            for name in self._names(consumer, topics, since_ms, wanted):
                found.setdefault((name.half_id, name.nonce), name)
                if len(found) == len(wanted):
                    break
        return list(found.values())

    def _names(
        self,
        consumer: Consumer,
        topics: Collection[str],
        since_ms: int,
        wanted: Collection[tuple[HalfId, Nonce]],
    ) -> Iterator[RecordName]:
        partitions = self._facts.partitions(topics)
        ends = all_of(self._facts.offsets(partitions, LogEnd.HIGH_WATERMARK))
        starts = _starts(consumer, partitions, since_ms)
        unread = {each: ends[each] for each in partitions if 0 <= starts[each] < ends[each]}
        consumer.assign([TopicPartition(*each, starts[each]) for each in unread])
        yield from read_to_ends(consumer, unread, lambda record: _name(record, wanted))

    def _since(self, consumer: Consumer, sought: Sequence[UnnamedRecord]) -> int:
        """Return a time (ms) before which none of the records was written."""
        times: list[int] = []
        for (shard, offset), ids in _by_manifest(sought).items():
            message = _record_at(consumer, TopicPartition(self._progress_topic, shard, offset))
            if message is None or not ids <= _listed(message):
                return START_MS
            times.append(message.timestamp()[1])
        return max(START_MS, min(times, default=START_MS) - EARLIER_MS)


def _by_manifest(sought: Sequence[UnnamedRecord]) -> dict[tuple[int, int], set[bytes]]:
    ids: dict[tuple[int, int], set[bytes]] = {}
    for each in sought:
        place = (each.shard, each.manifest_offset)
        ids.setdefault(place, set()).add(message_id_bytes(each.half_id, each.nonce))
    return ids


def _record_at(consumer: Consumer, place: TopicPartition) -> Message | None:
    """Return the record of that offset; None if it is gone, a marker, or not read in time."""
    consumer.assign([place])
    message = next_event(consumer, REQUEST_SECONDS)
    if message is None or message.error() is not None or message.offset() != place.offset:
        return None
    return message


def _listed(message: Message) -> set[bytes]:
    try:
        return set(decode(bytes(message.value() or b"")).published)
    except InvalidManifest:
        return set()


def _starts(
    consumer: Consumer, partitions: Collection[Partition], since_ms: int
) -> dict[Partition, int]:
    """Return each partition's first offset of that time or later; negative: there is none."""
    asked = [TopicPartition(*each, since_ms) for each in partitions]
    starts: dict[Partition, int] = {}
    for place in consumer.offsets_for_times(asked, timeout=REQUEST_SECONDS) if asked else ():
        if place.error is not None:
            raise KafkaUnavailable(f"Kafka: {place.error.str()}")
        starts[Partition(place.topic, place.partition)] = place.offset
    return starts


def _name(message: Message, wanted: Collection[tuple[HalfId, Nonce]]) -> RecordName | None:
    """Return the name in the record's headers, if it is one of the wanted records."""
    headers: dict[str, Any] = dict(message.headers() or ())
    try:
        half_id, nonce = parse_message_id(bytes(headers[MESSAGE_ID]).decode())
        if (half_id, nonce) not in wanted:
            return None
        group, transaction_id = bytes(headers[PRODUCER_GROUP]).decode(), headers.get(TRANSACTION_ID)
        text = None if transaction_id is None else bytes(transaction_id).decode()
        return RecordName(half_id, nonce, group, text)
    except (KeyError, ValueError, TypeError, InvalidMessageId):
        return None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
