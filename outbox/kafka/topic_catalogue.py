"""Kafka's list of topics; creates missing topics if the operator allows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewTopic

from outbox.kafka.client_config import admin_client, answered
from outbox.kafka.permission import FORBIDDEN, needed, the_topic
from outbox.telemetry.events import Event, get_logger

ASK_SECONDS: Final = 2.0
CREATE_SECONDS: Final = 10.0
BROKER_DEFAULT: Final = -1
"""Partitions or replicas by the broker's configuration."""
PASSING: Final = frozenset(
    {
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNKNOWN,
    }
)
"""Answers of a broker after which the same request may succeed."""


class KafkaTopicCatalogue:
    """Kafka's list of topics; called from a thread, never by a prepare or an end."""

    def __init__(self, bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> None:
        self._admin = admin_client(bootstrap_servers, {**kafka_config, "client.id": "outbox-api"})
        self._refusals: set[str] = set()
        """The names of the errors with which a broker has refused a topic; each is logged once."""

    def partitions(self) -> Mapping[str, int]:
        """Return the partition count of every topic. Raises KafkaUnavailable."""
        self._admin.poll(0)
        with answered(self._admin):
            metadata = self._admin.list_topics(timeout=ASK_SECONDS)
        return {
            name: len(topic.partitions)
            for name, topic in metadata.topics.items()
            if topic.error is None
        }

    def create(self, topics: Sequence[str]) -> Sequence[str]:
        """Create missing topics with the broker's defaults; return those that exist now.

        Kafka may refuse to create one, for lack of a right or by a policy. Raises KafkaUnavailable.
        """
        wanted = [NewTopic(name, BROKER_DEFAULT, BROKER_DEFAULT) for name in topics]
        futures = self._admin.create_topics(wanted, operation_timeout=CREATE_SECONDS)
        return [topic for topic, future in futures.items() if self._exists(topic, future)]

    def _exists(self, topic: str, created: Future[None]) -> bool:
        """Return whether the topic exists now; False: Kafka refuses to create it."""
        with answered(self._admin):
            try:
                created.result(timeout=CREATE_SECONDS)
            except KafkaException as error:
                refusal = error.args[0]
                if refusal.code() < 0 or refusal.code() in PASSING:
                    raise
                if refusal.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    self._note_refusal(topic, refusal)
                    return False
        return True

    def _note_refusal(self, topic: str, refusal: KafkaError) -> None:
        if refusal.name() not in self._refusals:
            self._refusals.add(refusal.name())
            lacks_right = refusal.code() in FORBIDDEN
            words = needed("CREATE", the_topic(topic)) if lacks_right else refusal.name()
            get_logger().warning(Event.TOPIC_REFUSED, topic=topic, error=words)
