"""Topics of a test's own, and what a read_committed consumer sees in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any
from uuid import uuid4

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from outbox.messages.record import Record
from tests.fixtures_waiting import wait_for

QUIET_SECONDS = 0.3
READ_SECONDS = 60.0


def make_topic(
    bootstrap_servers: str,
    *,
    partitions: int,
    name: str | None = None,
    config: dict[str, str] | None = None,
) -> str:
    """Create a topic with a fresh name; return the name once it can be used.

    On an aged installation the log of a topic with a fresh name starts above 0.
    """
    topic = name or f"topic-{uuid4()}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config or {})
    admin.create_topics([new])[topic].result(timeout=60)
    wait_for(lambda: _is_led(admin, topic, partitions))
    return topic


def _is_led(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Return whether the broker knows a leader of each partition, as it may not at first."""
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions.values()
    return len(found) == partitions and all(each.leader >= 0 for each in found)


def delete_topic(bootstrap_servers: str, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result(timeout=60)


def delete_all_records(bootstrap_servers: str, topic: str, partition: int) -> None:
    """Delete every record that a partition holds now, as retention does."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    until = TopicPartition(topic, partition, OFFSET_END)
    admin.delete_records([until])[until].result(timeout=60)


def set_max_message_bytes(bootstrap_servers: str, topic: str, most: int) -> None:
    """Set the largest batch that the topic takes."""
    set_topic(bootstrap_servers, topic, "max.message.bytes", most)


def set_topic(bootstrap_servers: str, topic: str, name: str, value: int) -> None:
    """Change one setting of a topic."""
    _set(bootstrap_servers, ResourceType.TOPIC, topic, ConfigEntry(name, str(value)))


def _set(bootstrap_servers: str, kind: ResourceType, name: str, entry: ConfigEntry) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    entry.incremental_operation = AlterConfigOpType.SET
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(timeout=60)


def committed_records(bootstrap_servers: str, topic: str, expected: int) -> list[Record]:
    """Return all committed records, partition by partition; waits a bounded time for ``expected``.

    Reads on for a moment after that, so that a record too many is seen as well.
    """
    messages = sorted(read_committed(bootstrap_servers, topic, expected), key=_place)
    return [_record(message) for message in messages]


def read_committed(bootstrap_servers: str, topic: str, expected: int) -> list[Message]:
    """Return the committed messages of a topic in the order they were read."""
    config = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 50,
        "log_level": 0,
    }
    with closing(Consumer(config)) as consumer:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        seen = list(islice(_messages(consumer, READ_SECONDS, wait=True), expected))
        return [*seen, *_messages(consumer, QUIET_SECONDS, wait=False)]


def _messages(consumer: Consumer, seconds: float, *, wait: bool) -> Iterator[Message]:
    """Yield messages until the time is over, or without ``wait`` until none comes for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None or _is_end(message):
            continue
        if not wait:
            deadline = time.monotonic() + seconds
        yield message


def _is_end(message: Message) -> bool:
    error = message.error()
    assert error is None or error.code() == KafkaError._PARTITION_EOF
    return error is not None


def _place(message: Message) -> tuple[int, int]:
    return message.partition() or 0, message.offset() or 0


def _record(message: Message) -> Record:
    headers: Any = message.headers() or ()
    key: Any = message.key()
    value: Any = message.value()
    return Record(message.topic() or "", key, value, message.partition(), tuple(headers))
