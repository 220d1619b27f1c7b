"""The audit's direct reads from Kafka: partitions, offsets, single records by offset.

Threads may share it. It only reads, never in a consumer group, and always with a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from datetime import datetime
from threading import Event
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.admin._acl import AclOperation

from outbox.errors import KafkaForbidden, KafkaUnavailable
from outbox.kafka.client_config import REQUEST_SECONDS, admin_client, serve
from outbox.kafka.permission import missing_rights, next_event
from outbox.kafka.topic_description import describe
from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts

RETRIES: Final = 10
RETRY_SECONDS: Final = 0.5
"""A partition without a leader, during an election, is asked again for about five seconds."""
RECORD_SECONDS: Final = 10.0
"""The time limit of one record; a record that is not read by then counts as gone."""

FINAL: Final = (
    KafkaError._PARTITION_EOF,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.OFFSET_OUT_OF_RANGE,
)
"""Errors after which a partition returns no more events."""

_PAUSE: Final = Event()
_SPEC: Final[Mapping[LogEnd, tuple[Callable[[], Any], IsolationLevel]]] = {
    LogEnd.START: (OffsetSpec.earliest, IsolationLevel.READ_UNCOMMITTED),
    LogEnd.HIGH_WATERMARK: (OffsetSpec.latest, IsolationLevel.READ_UNCOMMITTED),
    LogEnd.LAST_STABLE: (OffsetSpec.latest, IsolationLevel.READ_COMMITTED),
}
_STAMPED_BY: Final = {
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


class KafkaLogReader:
    """The LogFacts of one cluster."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Any] | None = None) -> None:
        self._config = {**(config or {}), "bootstrap.servers": bootstrap_servers}
        self._admin = admin_client(bootstrap_servers, config or {})

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return every partition of the topics that exist."""
        serve(self._admin)
        try:
            known = self._admin.list_topics(timeout=REQUEST_SECONDS).topics
        except KafkaException as error:
            raise _unavailable(error) from error
        return [
            Partition(topic, number)
            for topic in sorted(set(topics) & known.keys())
            for number in sorted(known[topic].partitions)
        ]

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return one offset per partition."""
        if not partitions:
            return Offsets(offsets={})
        offsets, errors = self._ask(partitions, end)
        for _ in range(RETRIES):
            if not errors:
                break
            _PAUSE.wait(RETRY_SECONDS)
            self._refresh_leaders()
            again, errors = self._ask(errors, end)
            offsets |= again
        if not offsets:
            raise KafkaUnavailable(f"Kafka: {next(iter(errors.values()))}")
        return Offsets(offsets=offsets, errors=errors)

    def offsets_since(self, partitions: Collection[Partition], at: datetime) -> Offsets:
        """Return each partition's first offset of that time or later; see LogFacts."""
        if not partitions:
            return Offsets(offsets={})
        asked = [TopicPartition(t, n, int(at.timestamp() * 1000)) for t, n in partitions]
        with closing(Consumer(self._consumer_config(), logger=None)) as consumer:
            try:
                answers = consumer.offsets_for_times(asked, REQUEST_SECONDS)
            except KafkaException as error:
                raise _unavailable(error) from error
        return _with_offsets(answers)

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return the facts of each topic; see LogFacts.describe."""
        return describe(self._admin, topics)

    def require_read(self, topics: Collection[str]) -> None:
        """Raise KafkaForbidden if this principal may not read one of the topics, or not see it."""
        required = dict.fromkeys(topics, (AclOperation.READ,))
        for words in missing_rights(self._admin, required).values():
            raise KafkaForbidden(words)

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Read the first record at or after each offset, all at once; see LogReader."""
        self.require_read({partition.topic for partition in places})
        if not places:
            return {}
        with closing(Consumer(self._consumer_config(), logger=None)) as consumer:
            consumer.assign([TopicPartition(t, n, at) for (t, n), at in places.items()])
            return _first_of_each(consumer, places)

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Read single committed records by offset; see LogReader."""
        self.require_read({partition.topic for partition, _ in places})
        if not places:
            return []
        with closing(Consumer(self._consumer_config(), logger=None)) as consumer:
            return list(_read_each(consumer, sorted(places)))

    def _refresh_leaders(self) -> None:
        """Request the current leaders: librdkafka would keep asking the old ones."""
        with suppress(KafkaException):
            self._admin.list_topics(timeout=REQUEST_SECONDS)

    def _ask(
        self, partitions: Iterable[Partition], end: LogEnd
    ) -> tuple[dict[Partition, int], dict[Partition, str]]:
        serve(self._admin)
        spec, isolation = _SPEC[end]
        futures = self._admin.list_offsets(
            {TopicPartition(topic, number): spec() for topic, number in partitions},
            isolation_level=isolation,
            request_timeout=REQUEST_SECONDS,
        )
        return _collect(futures)

    def _consumer_config(self) -> dict[str, Any]:
        return {
            **self._config,
            "group.id": "outbox-reconcile",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": 1,
            "log_level": 0,
        }


def _collect(
    futures: Mapping[TopicPartition, Future[Any]],
) -> tuple[dict[Partition, int], dict[Partition, str]]:
    offsets: dict[Partition, int] = {}
    errors: dict[Partition, str] = {}
    for asked, future in futures.items():
        partition = Partition(asked.topic, asked.partition)
        try:
            offset = future.result(timeout=2 * REQUEST_SECONDS).offset
        except (KafkaException, TimeoutError) as error:
            errors[partition] = _words(error)
            continue
        if offset < 0:  # The connection broke; librdkafka calls this no error.
            errors[partition] = "no offset was returned"
        else:
            offsets[partition] = offset
    return offsets, errors


def _with_offsets(answers: Iterable[TopicPartition]) -> Offsets:
    """Split the answers; a partition without a record of that time or later has no offset."""
    found = {Partition(each.topic, each.partition): each for each in answers}
    return Offsets(
        offsets={
            p: each.offset for p, each in found.items() if not each.error and each.offset >= 0
        },
        errors={p: each.error.str() for p, each in found.items() if each.error},
    )


def _read_each(consumer: Consumer, places: Sequence[tuple[Partition, int]]) -> Iterator[LogRecord]:
    for partition, offset in places:
        consumer.assign([TopicPartition(partition.topic, partition.number, offset)])
        message = _next_of(consumer, partition)
        if message is not None and message.error() is None and message.offset() == offset:
            yield _record(partition, message)


def _first_of_each(
    consumer: Consumer, places: Mapping[Partition, int]
) -> dict[Partition, LogRecord | None]:
    """Return the first record of each partition, or None at the end of its log.

    An offset that has expired since it was read is left out: nothing is known about it.
    """
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
            found[partition] = _record(partition, message)
        elif error.code() == KafkaError._PARTITION_EOF:
            found[partition] = None
    return found


def _next_of(consumer: Consumer, partition: Partition) -> Message | None:
    """Return the next event of this partition; skip late events of the previous one."""
    for _ in range(3):
        message = next_event(consumer, RECORD_SECONDS)
        if message is None or (message.topic(), message.partition()) == partition:
            return message
    return None


def _record(partition: Partition, message: Message) -> LogRecord:
    headers: Iterable[tuple[str, str | bytes | None]] = message.headers() or ()  # type: ignore[assignment]
    return LogRecord(
        partition=partition,
        offset=message.offset() or 0,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((name, _bytes(value)) for name, value in headers),
        stamped_by=_STAMPED_BY.get(message.timestamp()[0]),
    )


def _bytes(given: str | bytes | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def _unavailable(error: KafkaException) -> KafkaUnavailable:
    return KafkaUnavailable(f"Kafka: {_words(error)}")


def _words(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return str(reason.str()) if hasattr(reason, "str") else str(reason) or type(error).__name__
