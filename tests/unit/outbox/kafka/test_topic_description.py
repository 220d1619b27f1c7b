"""A topic whose settings do not come is never taken for one that keeps everything."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.kafka import topic_description


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


def describe(error: Exception) -> object:
    """Describe a topic by a broker that answers so."""
    return topic_description.describe(Admin(error), ["points"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error", [TimeoutError(), KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))]
)
def test_settings_that_do_not_come_are_an_unavailable_kafka(error: Exception) -> None:
    with pytest.raises(KafkaUnavailable):
        describe(error)


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED]
)
def test_a_topic_that_is_missing_or_forbidden_is_left_to_its_description(code: int) -> None:
    assert describe(KafkaException(KafkaError(code))) == {}
