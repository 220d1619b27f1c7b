"""Reads from the data topics which of a shard's messages Kafka has.

Call it only when the shard's producers are fenced: later commits are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from outbox.clock import SystemClock
from outbox.errors import InvalidMessageId, KafkaUnavailable
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.permission import next_event
from outbox.messages.message_id import HalfId, Nonce, parse_message_id
from outbox.messages.record import BATCH, MESSAGE_ID
from outbox.reconciliation.log import LogEnd, Offsets, Partition

T = TypeVar("T")
POLL_SECONDS: Final = 0.25
STUCK_SECONDS: Final = 60.0
"""Longer than the longest possible transaction of the relay."""


class Seen(NamedTuple):
    """A committed record of the shard."""

    batch_no: int
    half_id: HalfId
    nonce: Nonce


def scan(
    facts: KafkaLogReader, consumer_config: Mapping[str, Any], topics: Collection[str], shard: int
) -> Iterator[Seen]:
    """Yield the shard's committed records, from each log's start to its high watermark.

    Raises KafkaUnavailable when an end is not reached: a partial result is useless.
    """
    partitions = facts.partitions(topics)
    starts = all_of(facts.offsets(partitions, LogEnd.START))
    ends = all_of(facts.offsets(partitions, LogEnd.HIGH_WATERMARK))
    unread = {each: ends[each] for each in partitions if starts[each] < ends[each]}
    with closing(Consumer(dict(consumer_config))) as consumer:
        consumer.assign([TopicPartition(*each, starts[each]) for each in unread])
        try:
            yield from read_to_ends(consumer, unread, lambda record: _seen(record, shard))
        except KafkaException as error:
            raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error


def read_to_ends(
    consumer: Consumer, unread: dict[Partition, int], read: Callable[[Message], T | None]
) -> Iterator[T]:
    """Yield the results of ``read`` for the assigned partitions' records, up to these ends.

    Raises KafkaUnavailable when an end is not reached, KafkaForbidden, and KafkaException.
    """
    clock = SystemClock()
    moved_at = clock.monotonic()
    while unread:
        message = next_event(consumer, POLL_SECONDS)
        if message is None:
            if clock.monotonic() - moved_at > STUCK_SECONDS:
                raise KafkaUnavailable(f"Kafka: the end of {next(iter(unread))} was not reached")
            continue
        place, offset = _place(message)
        end, is_record = unread.get(place), _is_record(message)
        if end is None:
            continue
        moved_at = clock.monotonic()
        if is_record and offset < end and (seen := read(message)) is not None:
            yield seen
        if (offset + 1 if is_record else offset) >= end:
            del unread[place]
            consumer.pause([TopicPartition(*place)])


def all_of(offsets: Offsets) -> Mapping[Partition, int]:
    """Return the offsets if there is one for each partition. Raises KafkaUnavailable."""
    if offsets.errors:
        raise KafkaUnavailable(f"Kafka: {next(iter(offsets.errors.items()))}")
    return offsets.offsets


def _place(message: Message) -> tuple[Partition, int]:
    offset = message.offset()
    place = Partition(str(message.topic()), int(message.partition() or 0))
    return place, -1 if offset is None else offset


def _is_record(message: Message) -> bool:
    """Return False for an end-of-partition event, whose offset counts markers too."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is None


def _seen(message: Message, shard: int) -> Seen | None:
    """Return the ids in the headers; None without them, or for a record of another shard."""
    headers: dict[str, Any] = dict(message.headers() or ())
    try:
        of_shard, batch_no, _ = bytes(headers[BATCH]).decode().split(".")
        if int(of_shard) != shard:
            return None
        return Seen(int(batch_no), *parse_message_id(bytes(headers[MESSAGE_ID]).decode()))
    except (KeyError, ValueError, TypeError, InvalidMessageId):
        return None
