"""Reads the records of data topics: which messages Kafka has, and whose they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from outbox.errors import InvalidMessageId, KafkaUnavailable
from outbox.kafka.client_config import answered, consumer_config
from outbox.kafka.log_reader import KafkaLogReader, read_to_ends
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.manifest import decode
from outbox.messages.message_id import HalfId, Nonce, message_id_bytes, parse_message_id
from outbox.messages.record import (
    BATCH,
    MESSAGE_ID,
    PRODUCER_GROUP,
    TRANSACTION_ID,
    RecordName,
    UnnamedRecord,
)
from outbox.reconciliation.log import LogEnd, Offsets, Partition

STUCK_SECONDS: Final = 60.0
"""Longer than the longest possible transaction of the relay."""
EARLIER: Final = timedelta(minutes=1)
"""Longer than the longest transaction of the relay."""


class Seen(NamedTuple):
    """A committed record of the shard."""

    batch_no: int
    half_id: HalfId
    nonce: Nonce


class KafkaTopicScan:
    """Reads of whole topics; only tests change ``progress_topic``."""

    def __init__(
        self,
        bootstrap_servers: str,
        kafka_config: Mapping[str, Any],
        progress_topic: str = PROGRESS_TOPIC,
    ) -> None:
        self._log = KafkaLogReader(bootstrap_servers, kafka_config)
        self._config = consumer_config(bootstrap_servers, kafka_config)
        self._progress_topic = progress_topic

    def of_shard(self, topics: Collection[str], shard: int) -> Iterator[Seen]:
        """Yield the shard's committed records, from each log's start to its high watermark.

        Call it only when the shard's producers are fenced: later commits are not seen. Raises
        KafkaUnavailable when an end is not reached: a partial result is useless.
        """
        return (seen for of, seen, _ in self._records(topics, None) if of == shard)

    def read(
        self, sought: Sequence[UnnamedRecord], topics: Collection[str]
    ) -> Sequence[RecordName]:
        """Return the names of the records that the topics still have. Raises KafkaUnavailable."""
        wanted = {(each.half_id, each.nonce) for each in sought}
        found: dict[tuple[HalfId, Nonce], RecordName] = {}
        since = self._since(sought)
        for _, _, name in self._records(topics, since):
            if (name.half_id, name.nonce) in wanted:
                found.setdefault((name.half_id, name.nonce), name)
            if len(found) == len(wanted):
                break
        return list(found.values())

    def _since(self, sought: Sequence[UnnamedRecord]) -> datetime | None:
        """Return a time before which none of the records was written; None: it is unknown.

        Records have PostgreSQL's time, and those of a manifest are at most one transaction older.
        It is unknown unless Kafka still has the manifests that list all of them.
        """
        places = {
            (Partition(self._progress_topic, each.shard), each.manifest_offset) for each in sought
        }
        manifests = self._log.records(places)
        listed = {known for each in manifests for known in decode(each.value or b"").published}
        if not listed.issuperset(message_id_bytes(each.half_id, each.nonce) for each in sought):
            return None
        first = min(each.written_at_ms for each in manifests)
        return datetime.fromtimestamp(first / 1000, UTC) - EARLIER

    def _records(
        self, topics: Collection[str], since: datetime | None
    ) -> Iterator[tuple[int, Seen, RecordName]]:
        """Yield the shards, the ids and the names of our records up to the high watermarks."""
        partitions = self._log.partitions(topics)
        starts = _all_of(
            self._log.offsets(partitions, LogEnd.START)
            if since is None
            else self._log.offsets_since(partitions, since)
        )
        ends = _all_of(self._log.offsets(partitions, LogEnd.HIGH_WATERMARK))
        unread = {each: ends[each] for each, start in starts.items() if start < ends[each]}
        with answered(), closing(Consumer(self._config)) as consumer:
            consumer.assign([TopicPartition(*each, starts[each]) for each in unread])
            read_at = monotonic()
            for message in read_to_ends(consumer, unread):
                if message is not None:
                    read_at = monotonic()
                    if (ours := _read(message)) is not None:
                        yield ours
                elif monotonic() - read_at > STUCK_SECONDS:
                    names = ", ".join(sorted(topics))
                    raise KafkaUnavailable(f"Kafka: an end of {names} was not reached")


def _all_of(offsets: Offsets) -> Mapping[Partition, int]:
    """Return the offsets if none is unknown. Raises KafkaUnavailable."""
    if offsets.errors:
        raise KafkaUnavailable(next(iter(offsets.errors.values())))
    return offsets.offsets


def _read(message: Message) -> tuple[int, Seen, RecordName] | None:
    """Read the headers; None without ours, which are those of a stranger's record."""
    headers: dict[str, Any] = dict(message.headers() or ())
    try:
        shard, batch_no, _ = bytes(headers[BATCH]).decode().split(".")
        half_id, nonce = parse_message_id(bytes(headers[MESSAGE_ID]).decode())
        group, transaction_id = bytes(headers[PRODUCER_GROUP]).decode(), headers.get(TRANSACTION_ID)
        text = None if transaction_id is None else bytes(transaction_id).decode()
        seen = Seen(int(batch_no), half_id, nonce)
        return int(shard), seen, RecordName(half_id, nonce, group, text)
    except (KeyError, ValueError, TypeError, InvalidMessageId):
        return None
