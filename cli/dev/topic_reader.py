"""Reads a topic as a `read_committed` consumer, from its start to its current end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Final, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from outbox.errors import KafkaUnavailable

POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """A record as a consumer reads it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def header(self, name: str) -> str | None:
        """Return the first header of that name as text."""
        return next((value.decode() for key, value in self.headers if key == name), None)


def read_topic(
    bootstrap_servers: str, topic: str, *, timeout_seconds: float = 10.0
) -> tuple[SeenRecord, ...]:
    """Return every committed record of `topic`; a missing topic has none.

    Raises KafkaUnavailable if the end is not reached in time.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "outbox-topic-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        return tuple(_read(consumer, topic, monotonic() + timeout_seconds))
    except KafkaException as error:
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, deadline: float) -> Iterator[SeenRecord]:
    known = consumer.list_topics(topic, timeout=max(0.1, deadline - monotonic())).topics[topic]
    unread = set(known.partitions)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in unread])
    while unread:
        message = consumer.poll(POLL_SECONDS)
        if message is None:
            if monotonic() > deadline:
                raise KafkaUnavailable(f"Kafka: the end of {topic} was not reached in time")
        elif (error := message.error()) is None:
            yield _seen(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            unread.discard(message.partition())
        else:
            raise KafkaException(error)


def _seen(message: Message) -> SeenRecord:
    headers = cast("list[tuple[str, bytes]]", message.headers() or [])
    return SeenRecord(
        topic=str(message.topic()),
        partition=cast(int, message.partition()),
        offset=cast(int, message.offset()),
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )
