"""The audit's direct reads from Kafka: partitions, offsets, single records by offset.

Threads may share it. It only reads, never in a consumer group, and always with a time limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from threading import Event
from typing import Any, Final

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.admin._acl import AclOperation

from outbox.errors import KafkaForbidden, KafkaUnavailable, RecordUnread
from outbox.kafka.client_config import REQUEST_SECONDS, admin_client, answered, consumer_config
from outbox.kafka.permission import next_event
from outbox.kafka.topics import TO_READ, read_topics
from outbox.messages.record import MESSAGE_ID
from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts

RETRIES: Final = 10
RETRY_SECONDS: Final = 0.5
"""A partition without a leader, during an election, is asked again for about five seconds."""
POLL_SECONDS: Final = 0.25
RECORD_SECONDS: Final = 10.0
"""The time limit of one record; a record that is not read by then counts as gone."""

FINAL: Final = (
    KafkaError._PARTITION_EOF,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.OFFSET_OUT_OF_RANGE,
)
"""Errors after which a partition returns no more events."""

_PAUSE: Final = Event()
_SPEC: Final[Mapping[LogEnd, tuple[OffsetSpec, IsolationLevel]]] = {
    LogEnd.START: (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),  # type: ignore[no-untyped-call]
    LogEnd.HIGH_WATERMARK: (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),  # type: ignore[no-untyped-call]
    LogEnd.LAST_STABLE: (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),  # type: ignore[no-untyped-call]
}
_ONE_RECORD: Final[Mapping[str, Any]] = {"fetch.queue.backoff.ms": 10, "queued.min.messages": 1}
NO_RECORD: Final = -1
"""The offset of a time after the last record."""


class KafkaLogReader:
    """Asks the brokers of one cluster directly; each call takes a bounded time."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Any] | None = None) -> None:
        self._config = {**consumer_config(bootstrap_servers, config or {}), **_ONE_RECORD}
        self._admin = admin_client(bootstrap_servers, config or {})

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return every partition of the topics that exist. Raises KafkaUnavailable."""
        self._admin.poll(0)
        with answered(self._admin):
            known = self._admin.list_topics(timeout=REQUEST_SECONDS).topics
        return [
            Partition(topic, number)
            for topic in sorted(set(topics) & known.keys())
            for number in sorted(known[topic].partitions)
        ]

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return one offset per partition; a partition that fails alone is in ``errors``.

        Raises KafkaUnavailable when no broker answers.
        """
        return self._offsets(partitions, *_SPEC[end])

    def offsets_since(self, partitions: Collection[Partition], at: datetime) -> Offsets:
        """Return per partition the first offset of a record of that time or later.

        A partition without such a record is in neither part of the answer.
        """
        since = OffsetSpec.for_timestamp(int(at.timestamp() * 1000))
        return self._offsets(partitions, since, IsolationLevel.READ_COMMITTED)

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return the facts of each topic, or why there are none; a missing topic is left out.

        Raises KafkaUnavailable.
        """
        return {
            name: each.lacks(*TO_READ)
            or TopicFacts(
                id=each.id,
                partitions=each.partitions,
                compacts="compact" in each.settings.get("cleanup.policy", ""),
            )
            for name, each in read_topics(self._admin, topics).items()
        }

    def require_read(self, topics: Collection[str]) -> None:
        """Raise KafkaForbidden if this principal may not read one of the topics, or not see it."""
        for each in read_topics(self._admin, topics).values():
            if words := each.lacks(AclOperation.READ):
                raise KafkaForbidden(words)

    def message_at(self, partition: Partition, offset: int) -> str | None:
        """Return the message id in the headers of a committed record; None: there is none.

        Raises KafkaForbidden, KafkaUnavailable.
        """
        self.require_read([partition.topic])
        if partition not in self.partitions([partition.topic]):
            return None
        for record in self.records([(partition, offset)]):
            for name, value in record.headers:
                if name == MESSAGE_ID and value is not None:
                    return value.decode(errors="replace")
        return None

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Read the first committed record at or after each offset, all at once.

        None: there is none. A partition is left out if its offset has expired, or if the client
        cannot decode the record. Raises KafkaUnavailable when one does not answer in time,
        KafkaForbidden when this principal may not read it.
        """
        self.require_read({partition.topic for partition in places})
        if not places:
            return {}
        with closing(Consumer(self._config, logger=None)) as consumer:
            return _first_of_each(consumer, places)

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Read single committed records by offset.

        Those that no longer exist, or that the client cannot decode, are left out.

        Raises KafkaForbidden for a topic that this principal may not read.
        """
        self.require_read({partition.topic for partition, _ in places})
        if not places:
            return []
        with closing(Consumer(self._config, logger=None)) as consumer:
            return [
                record
                for partition, offset in sorted(places)
                if (record := _first_of_each(consumer, {partition: offset}).get(partition))
                and record.offset == offset
            ]

    def between(self, ranges: Mapping[Partition, tuple[int, int]]) -> Iterator[LogRecord]:
        """Read the committed records of these ranges: from one offset up to another, exclusive.

        Raises KafkaForbidden, KafkaUnavailable if a range has expired, and RecordUnread.
        """
        filled = {p: each for p, each in ranges.items() if each[0] < each[1]}
        self.require_read({partition.topic for partition in filled})
        if not filled:
            return
        with answered(), closing(Consumer(self._config, logger=None)) as consumer:
            consumer.assign([TopicPartition(*p, start) for p, (start, _) in filled.items()])
            silent = 0.0
            for message in read_to_ends(consumer, {p: end for p, (_, end) in filled.items()}):
                silent = 0.0 if message else silent + POLL_SECONDS
                if silent >= RECORD_SECONDS:
                    raise RecordUnread("Kafka: a range was not read in time")
                if message is not None:
                    partition = Partition(message.topic() or "", message.partition() or 0)
                    yield _record(partition, message)

    def _offsets(
        self,
        partitions: Collection[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel,
    ) -> Offsets:
        if not partitions:
            return Offsets(offsets={})
        offsets, errors = self._ask(partitions, spec, isolation)
        for _ in range(RETRIES):
            if not errors:
                break
            _PAUSE.wait(RETRY_SECONDS)
            with suppress(KafkaException):
                # librdkafka would keep asking the old leaders.
                self._admin.list_topics(timeout=REQUEST_SECONDS)
            again, errors = self._ask(errors, spec, isolation)
            offsets |= again
        if errors and not offsets:
            raise KafkaUnavailable(next(iter(errors.values())))
        return Offsets(offsets=offsets, errors=errors)

    def _ask(
        self,
        partitions: Iterable[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel,
    ) -> tuple[dict[Partition, int], dict[Partition, str]]:
        self._admin.poll(0)
        futures = self._admin.list_offsets(
            {TopicPartition(topic, number): spec for topic, number in partitions},
            isolation_level=isolation,
            request_timeout=REQUEST_SECONDS,
        )
        offsets: dict[Partition, int] = {}
        errors: dict[Partition, str] = {}
        for asked, future in futures.items():
            partition = Partition(asked.topic, asked.partition)
            try:
                with answered():
                    offset = future.result(timeout=2 * REQUEST_SECONDS).offset
            except KafkaUnavailable as error:
                errors[partition] = str(error)
                continue
            if offset == OFFSET_INVALID:  # The connection broke; librdkafka calls this no error.
                errors[partition] = "Kafka returned no offset"
            elif offset != NO_RECORD:
                offsets[partition] = offset
        return offsets, errors


def read_to_ends(consumer: Consumer, ends: Mapping[Partition, int]) -> Iterator[Message | None]:
    """Yield the records of assigned partitions below these offsets, until all are reached.

    None: none came within POLL_SECONDS. An empty poll does not mean the end, because aborted
    records and markers have offsets, too; an end-of-partition event counts them.
    """
    unread = dict(ends)
    while unread:
        message = next_event(consumer, POLL_SECONDS)
        if message is None:
            yield None
            continue
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        place, offset = Partition(message.topic() or "", message.partition() or 0), message.offset()
        if place not in unread or offset is None:
            continue
        if error is None and offset < unread[place]:
            yield message
        if (offset + 1 if error is None else offset) >= unread[place]:
            del unread[place]
            consumer.pause([TopicPartition(*place)])


def _first_of_each(
    consumer: Consumer, places: Mapping[Partition, int]
) -> dict[Partition, LogRecord | None]:
    """Read the first record of each partition, or None at the end of its log.

    An offset that has expired since it was read is left out: nothing is known about it. So is a
    record that the client cannot decode.
    """
    consumer.assign([TopicPartition(*place, at) for place, at in places.items()])
    found: dict[Partition, LogRecord | None] = {}
    waiting = {*places}
    while waiting:
        message = next_event(consumer, RECORD_SECONDS)
        if message is None:
            topic, number = min(waiting)
            raise KafkaUnavailable(f"Kafka: {topic}/{number} was not read in time")
        partition = Partition(message.topic() or "", message.partition() or 0)
        error = message.error()
        if (error is not None and error.code() not in FINAL) or partition not in waiting:
            continue
        waiting.discard(partition)
        if error is None:
            with suppress(RecordUnread):
                found[partition] = _record(partition, message)
        elif error.code() == KafkaError._PARTITION_EOF:
            found[partition] = None
    return found


def _record(partition: Partition, message: Message) -> LogRecord:
    try:
        headers: Iterable[tuple[str, str | bytes | None]] = message.headers() or ()  # type: ignore[assignment]
    except SystemError:  # The client's words for a header name that is not UTF-8.
        place = f"{partition.topic}/{partition.number}, offset {message.offset()}"
        raise RecordUnread(f"Kafka: a header name at {place} is not UTF-8") from None
    return LogRecord(
        partition=partition,
        offset=message.offset() or 0,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((name, _bytes(value)) for name, value in headers),
        written_at_ms=message.timestamp()[1],
    )


def _bytes(given: str | bytes | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given
