"""Partitions whose last stable offset is behind: an open transaction, or one that never ended.

Kafka ends a transaction that is open for too long. One that is older than its time limit hangs: its
marker was skipped, and no `read_committed` consumer gets past it.

The time of a record is its producer's, and Kafka Streams and mirrors copy it. So the age of a
stranger's transaction is known only by the brokers' time (`LogAppendTime`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Message, TopicPartition

from outbox.errors import KafkaForbidden
from outbox.kafka.client_config import PRODUCER_FIXED
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.permission import next_event
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.record import MESSAGE_ID
from outbox.reconciliation.log import LogEnd, Partition

READ_SECONDS: Final = 10.0
SWEEP_SECONDS: Final = 50.0
"""Kafka looks for transactions that are too old every ten seconds, and ends them with a marker."""
SENT_SECONDS: Final = PRODUCER_FIXED["transaction.timeout.ms"] / 1000
"""Kafka has a record of the relay so soon after its time, or never."""
RELAY_SECONDS: Final = SENT_SECONDS + SWEEP_SECONDS
"""After this time a transaction of the relay has ended, or hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnds:
    """The offset that the next record gets, and the one where `read_committed` consumers stop."""

    stable: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """The first open transaction of a partition."""

    partition: Partition
    offset: int
    """the last stable offset: its first record"""
    began: float | None
    """time of that record, epoch seconds; None: it could not be read"""
    sure: bool = False
    """This time comes from the clock of a broker or of a relay."""
    ours: bool = False
    """It is one of a relay."""

    def hangs(self, now: float, longest_seconds: float) -> bool:
        """Return whether it is older than its limit; `longest_seconds` is that of strangers."""
        return self.sure and self._is_old(now, longest_seconds)

    def may_hang(self, now: float, longest_seconds: float) -> bool:
        """Return whether only its own record says that it is too old, or nothing says its age."""
        return not self.sure and self._is_old(now, longest_seconds)

    def _is_old(self, now: float, longest_seconds: float) -> bool:
        limit = RELAY_SECONDS if self.ours else longest_seconds + SWEEP_SECONDS
        return self.began is None or now - self.began > limit


def open_transactions(
    bootstrap_servers: str, kafka_config: Mapping[str, Any], topics: Collection[str]
) -> Sequence[OpenTransaction]:
    """Return the first open transaction of each partition that has one. Raises KafkaUnavailable."""
    ends = partition_ends(KafkaLogReader(bootstrap_servers, kafka_config), topics)
    return transactions_behind(bootstrap_servers, kafka_config, ends)


def partition_ends(
    log: KafkaLogReader, topics: Collection[str]
) -> Mapping[Partition, PartitionEnds]:
    """Return the ends of each partition that answers. Raises KafkaUnavailable."""
    partitions = log.partitions(topics)
    # The stable offsets are read last: a transaction that has ended meanwhile is not behind.
    ends = log.offsets(partitions, LogEnd.HIGH_WATERMARK).offsets
    stable = log.offsets(partitions, LogEnd.LAST_STABLE).offsets
    return {
        each: PartitionEnds(stable=at, end=max(at, ends.get(each, at)))
        for each, at in sorted(stable.items())
    }


def transactions_behind(
    bootstrap_servers: str, kafka_config: Mapping[str, Any], ends: Mapping[Partition, PartitionEnds]
) -> Sequence[OpenTransaction]:
    """Return the first open transaction of each partition whose stable offset is behind."""
    behind = {each: at.stable for each, at in ends.items() if at.stable < at.end}
    if not behind:
        return []
    config = {**kafka_config, "bootstrap.servers": bootstrap_servers, **_READER}
    with closing(Consumer(config, logger=None)) as consumer:
        return [_at(consumer, partition, offset) for partition, offset in sorted(behind.items())]


_READER: Final[Mapping[str, Any]] = {
    "group.id": "outbox-doctor",
    "enable.auto.commit": False,
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "log_level": 0,
}


def _at(consumer: Consumer, partition: Partition, offset: int) -> OpenTransaction:
    """Read the first record of the transaction, and what tells its age."""
    consumer.assign([TopicPartition(partition.topic, partition.number, offset)])
    message = _next_record(consumer)
    if message is None:
        return OpenTransaction(partition=partition, offset=offset, began=None)
    ours = partition.topic == PROGRESS_TOPIC or _names_a_message(message)
    stamped_by, began = message.timestamp()
    return OpenTransaction(
        partition=partition,
        offset=offset,
        began=began / 1000,
        sure=ours or stamped_by == TIMESTAMP_LOG_APPEND_TIME,
        ours=ours,
    )


def _next_record(consumer: Consumer) -> Message | None:
    """Return the next record of the assigned partition; None: none, or none may be read."""
    message = None
    with suppress(KafkaForbidden):  # The doctor names rights that are missing.
        message = next_event(consumer, READ_SECONDS)
    return None if message is None or message.error() is not None else message


def _names_a_message(message: Message) -> bool:
    headers: Any = message.headers() or ()
    return any(name == MESSAGE_ID for name, _ in headers)
