"""Reads a shard's manifests back: the topic's identity, the end of its log, committed manifests.

The end is the high watermark. An admin client reads it with read_uncommitted, because a
read_committed consumer would return the last stable offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from outbox.errors import InvalidManifest, KafkaUnavailable
from outbox.kafka.client_config import REQUEST_SECONDS, answered
from outbox.kafka.log_reader import read_to_ends
from outbox.kafka.permission import permitted, the_topic
from outbox.messages.manifest import crc_of, decode
from outbox.reconciliation.log import Partition
from outbox.relay.protocol.state import Found

WAIT_SECONDS: Final = 10.0
"""The longest wait for manifests in one read; the relay gives a sign of life before each."""
MANIFESTS_AT_ONCE: Final = 256


class Cluster(NamedTuple):
    """The current identity of the Kafka cluster and its progress topic."""

    cluster_id: str
    topic_id: str
    partitions: int


class KafkaProgressLog:
    """The manifests of one shard; all shards can share the admin client.

    Methods raise KafkaUnavailable.
    """

    def __init__(
        self,
        admin: AdminClient,
        consumer_config: Mapping[str, Any],
        shard: int,
        topic: str,
    ) -> None:
        self._admin = admin
        self._config = dict(consumer_config)
        self._shard = shard
        self._topic = topic

    def cluster(self) -> Cluster:
        """Return the identity of the cluster and the progress topic.

        The cluster's id comes from the metadata: librdkafka's DescribeCluster aborts the process
        when every broker is fenced for a moment (an answer without brokers and topics).
        """
        self._admin.poll(0)
        with self._reading():
            metadata = self._admin.list_topics(self._topic, timeout=REQUEST_SECONDS)
            futures = self._admin.describe_topics(
                TopicCollection([self._topic]), request_timeout=REQUEST_SECONDS
            )
            topic = futures[self._topic].result()
        if not metadata.cluster_id:
            raise KafkaUnavailable("Kafka does not return its cluster id")
        return Cluster(metadata.cluster_id, str(topic.topic_id), len(topic.partitions))

    def bounds(self) -> tuple[int, int]:
        """Return the start and end offset of the shard's log, with aborted records and markers."""
        with self._reading():
            start = self._end(OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            return start, self._end(OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def read(self, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        """Read committed manifests from ``first`` on, and whether nothing is left below ``end``.

        It may return only some of them. After some seconds it returns none and False if the broker
        answers. An empty poll does not show whether the broker is away, so it is asked for the end
        once more.
        """
        deadline = monotonic() + WAIT_SECONDS
        found: list[Found] = []
        with self._reading(), closing(Consumer(self._config)) as consumer:
            consumer.assign([TopicPartition(self._topic, self._shard, first)])
            for message in read_to_ends(consumer, {Partition(self._topic, self._shard): end}):
                if message is not None:
                    found.append(_found(message))
                if monotonic() >= deadline or len(found) >= MANIFESTS_AT_ONCE:
                    break
            else:
                return tuple(found), True
            if not found:
                self._end(OffsetSpec.latest())  # type: ignore[no-untyped-call]
            return tuple(found), False

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with answered(self._admin), permitted("READ", the_topic(self._topic)):
            yield

    def _end(self, spec: Any) -> int:
        """Return one end of the log.

        When the connection breaks, librdkafka returns no error and no offset (-1001).
        """
        partition = TopicPartition(self._topic, self._shard)
        futures = self._admin.list_offsets(
            {partition: spec},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=REQUEST_SECONDS,
        )
        offset = int(futures[partition].result().offset)
        if offset < 0:
            raise KafkaUnavailable("Kafka does not return the offsets of the shard's manifests")
        return offset


def _found(message: Message) -> Found:
    offset, value = message.offset() or 0, bytes(message.value() or b"")
    try:
        return Found(offset, decode(value), crc_of(value))
    except InvalidManifest:
        return Found(offset, None, 0)
