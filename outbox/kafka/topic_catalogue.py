"""Kafka's list of topics; creates missing topics if the operator allows it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from outbox.errors import KafkaUnavailable

ASK_SECONDS: Final = 2.0
CREATE_SECONDS: Final = 10.0
BROKER_DEFAULT: Final = -1
"""Partitions or replicas by the broker's configuration."""


class KafkaTopicCatalogue:
    """The TopicCatalogue on an admin client, which reconnects by itself after an outage."""

    def __init__(self, bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> None:
        self._admin = AdminClient(
            {
                **kafka_config,
                "bootstrap.servers": bootstrap_servers,
                "client.id": "outbox-api",
                "log_level": 0,
            }
        )

    def partitions(self) -> Mapping[str, int]:
        """Return every topic's partition count; see TopicCatalogue.partitions."""
        try:
            metadata = self._admin.list_topics(timeout=ASK_SECONDS)
        except KafkaException as error:
            raise KafkaUnavailable(str(error)) from error
        return {
            name: len(topic.partitions)
            for name, topic in metadata.topics.items()
            if topic.error is None
        }

    def create(self, topics: Sequence[str]) -> None:
        """Create topics with the broker's defaults; see TopicCatalogue.create."""
        wanted = [NewTopic(name, BROKER_DEFAULT, BROKER_DEFAULT) for name in topics]
        futures = self._admin.create_topics(wanted, operation_timeout=CREATE_SECONDS)
        for future in futures.values():
            try:
                future.result(timeout=CREATE_SECONDS)
            except TimeoutError as error:
                raise KafkaUnavailable("Kafka did not answer in time") from error
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise KafkaUnavailable(str(error)) from error

    def close(self) -> None:
        """Let the client's threads end."""
        with contextlib.suppress(KafkaException):
            self._admin.poll(0)
