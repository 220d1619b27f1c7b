"""What this principal sees of topics: partitions, size limit, permission to write."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from confluent_kafka.admin._acl import AclOperation

from outbox.kafka.client_config import PRODUCER_DEFAULTS, admin_client
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.kafka.topics import TO_RELAY, Topic, read_topics
from outbox.messages.topics import SeenTopic

_COMPRESSION: Final = ("compression.type", "compression.codec")
_MAX_MESSAGE: Final = "message.max.bytes"
_LIMITS: Final = ("max.message.bytes", "segment.bytes")
"""A broker takes no batch above either; from Kafka 4.1 on, a segment has at least 1 MiB."""


class KafkaTopicView:
    """The view that the relay's principal has, on an admin client with the relay's properties."""

    def __init__(self, bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> None:
        self._admin = admin_client(bootstrap_servers, kafka_config)
        self._own_limit = int(kafka_config.get(_MAX_MESSAGE, PRODUCER_DEFAULTS[_MAX_MESSAGE]))
        self._compresses = any(kafka_config.get(name, "none") != "none" for name in _COMPRESSION)

    def read(self, topics: Collection[str]) -> Mapping[str, SeenTopic]:
        """Return what is seen of the topics that exist. Raises KafkaUnavailable."""
        self._admin.poll(0)
        return {name: self._seen(each) for name, each in read_topics(self._admin, topics).items()}

    def missing_rights(self, topics: Collection[str]) -> Collection[str]:
        """Return in words each right that the relay lacks on these topics or the manifests'."""
        seen = read_topics(self._admin, {PROGRESS_TOPIC, *topics})
        return [words for each in seen.values() if (words := each.lacks(*TO_RELAY))]

    def _seen(self, topic: Topic) -> SeenTopic:
        """Return what is seen; who may write to a topic also sees it.

        Compression makes a record smaller; then only the producer's own limit is certain.
        """
        if not topic.partitions:
            return SeenTopic(may_write=False)
        may_write = None if topic.allowed is None else AclOperation.WRITE in topic.allowed
        own, settings = self._own_limit, topic.settings
        limits = [int(settings[name]) for name in _LIMITS if name in settings]
        most = min(own, *limits) if limits else None
        compacted = "compact" in settings.get("cleanup.policy", "")
        return SeenTopic(topic.partitions, own if self._compresses else most, may_write, compacted)
