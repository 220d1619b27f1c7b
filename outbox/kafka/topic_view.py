"""What this principal sees of topics: partitions, size limit, permission to write."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import PRODUCER_DEFAULTS, REQUEST_SECONDS, admin_client, serve
from outbox.kafka.permission import TO_RELAY, missing_rights
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.record import BATCH, DECIDED_BY, MESSAGE_ID, PRODUCER_GROUP
from outbox.messages.topics import SeenTopic

OWN_HEADERS: Final = (
    MESSAGE_ID + "-" * 36,
    BATCH + "0.1.0",
    DECIDED_BY + "check",
    PRODUCER_GROUP + "g",
)
"""The names of the headers that each record has, with their shortest values."""
BATCH_BYTES: Final = 68 + sum(len(header) + 2 for header in OWN_HEADERS)
"""The fewest bytes of a batch with one record, apart from the caller's key, value and headers."""
_COMPRESSION: Final = ("compression.type", "compression.codec")
_MAX_MESSAGE: Final = "message.max.bytes"


class KafkaTopicView:
    """The view that the relay's principal has, on an admin client with the relay's properties."""

    def __init__(self, bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> None:
        self._admin = admin_client(bootstrap_servers, kafka_config)
        self._own_limit = int(kafka_config.get(_MAX_MESSAGE, PRODUCER_DEFAULTS[_MAX_MESSAGE]))
        self._compresses = any(kafka_config.get(name, "none") != "none" for name in _COMPRESSION)

    def read(self, topics: Collection[str]) -> Mapping[str, SeenTopic]:
        """Return what is seen of the topics that exist. Raises KafkaUnavailable."""
        serve(self._admin)
        if not topics:
            return {}
        described = self._admin.describe_topics(
            TopicCollection(sorted(topics)),
            include_authorized_operations=True,
            request_timeout=REQUEST_SECONDS,
        )
        limits = self._limits(topics)
        seen: dict[str, SeenTopic] = {}
        for name, future in described.items():
            try:
                topic = future.result(timeout=2 * REQUEST_SECONDS)
            except (KafkaException, TimeoutError) as error:
                _note(seen, name, error)
                continue
            allowed = topic.authorized_operations
            may_write = AclOperation.WRITE in allowed if allowed else None
            seen[name] = SeenTopic(len(topic.partitions), limits.get(name), may_write)
        return seen

    def missing_rights(self, topics: Collection[str]) -> Collection[str]:
        """Return in words each right that the relay lacks on these topics or the manifests'."""
        required = dict.fromkeys({PROGRESS_TOPIC, *topics}, TO_RELAY)
        return missing_rights(self._admin, required).values()

    def _limits(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return the limits of the topics whose settings are readable.

        Compression makes a record smaller; then only the producer's own limit is certain.
        """
        if self._compresses:
            return dict.fromkeys(topics, self._own_limit)
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)]
        futures = self._admin.describe_configs(asked, request_timeout=REQUEST_SECONDS)
        limits: dict[str, int] = {}
        for resource, future in futures.items():
            try:
                value = future.result(timeout=2 * REQUEST_SECONDS)["max.message.bytes"].value
            except (KafkaException, TimeoutError):
                continue
            limits[resource.name] = min(self._own_limit, int(value) - BATCH_BYTES)
        return limits


def _note(seen: dict[str, SeenTopic], name: str, error: Exception) -> None:
    """Note a topic that is hidden from this principal; one that is missing stays out.

    Who may write to a topic also sees it.
    """
    code = error.args[0].code() if isinstance(error, KafkaException) else None
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        seen[name] = SeenTopic(may_write=False)
    elif code not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION):
        raise KafkaUnavailable(f"Kafka does not describe {name}") from error
