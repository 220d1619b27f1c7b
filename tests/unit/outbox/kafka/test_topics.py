"""Settings of topics that the brokers do not send."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.kafka.topics import read_topics


class Admin:
    """Answers each question about settings with an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def describe_topics(self, topics: object, **options: object) -> dict[str, Future[Any]]:
        """Answer nothing: the settings come first."""
        return {}

    def describe_configs(
        self, asked: list[ConfigResource], **options: object
    ) -> dict[ConfigResource, Future[Any]]:
        """Fail."""
        answer: Future[Any] = Future()
        answer.set_exception(self.error)
        return {ConfigResource(ResourceType.TOPIC, "points"): answer}


@pytest.mark.parametrize(
    "error", [TimeoutError(), KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))]
)
def test_settings_that_do_not_come_are_an_unavailable_kafka(error: Exception) -> None:
    with pytest.raises(KafkaUnavailable):
        read_topics(Admin(error), ["points"])  # type: ignore[arg-type]
