"""Reads a topic from beginning to end, with either isolation level."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from outbox.kafka.log_reader import KafkaLogReader
from outbox.reconciliation.log import LogEnd
from tests.fixtures_waiting import wait_for

READ_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One record as a consumer sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, str], ...]

    @property
    def message_id(self) -> str:
        """The id for deduplication."""
        return dict(self.headers)["outbox_message_id"]


def read_topic(bootstrap: str, topic: str, *, committed: bool = True) -> list[Seen]:
    """Return every record of the topic that the isolation level shows, by partition and offset.

    A broker acknowledges a commit before it shows its records: committed ones are awaited.
    """
    if committed:
        wait_for(lambda: _all_ended(bootstrap, topic))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        return _read(consumer, topic)
    finally:
        consumer.close()


def _all_ended(bootstrap: str, topic: str) -> bool:
    log = KafkaLogReader(bootstrap)
    places = log.partitions([topic])
    ends = [log.offsets(places, end) for end in (LogEnd.LAST_STABLE, LogEnd.HIGH_WATERMARK)]
    return ends[0].offsets == ends[1].offsets


def _read(consumer: Consumer, topic: str) -> list[Seen]:
    metadata = consumer.list_topics(topic, timeout=60).topics[topic]
    if metadata.error is not None:
        return []
    consumer.assign([TopicPartition(topic, p, 0) for p in metadata.partitions])
    seen: list[Seen] = []
    at_end: set[int] = set()
    deadline = time.monotonic() + READ_SECONDS
    while len(at_end) < len(metadata.partitions):
        assert time.monotonic() < deadline, f"{topic} could not be read to its end"
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            seen.append(_seen(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            at_end.add(message.partition() or 0)
    return sorted(seen, key=lambda record: (record.partition, record.offset))


def _seen(message: Any) -> Seen:
    return Seen(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        headers=tuple((name, value.decode()) for name, value in message.headers() or ()),
    )
