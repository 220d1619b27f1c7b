"""What the brokers say of topics: missing rights, and settings that do not come."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.kafka.topics import TO_RELAY, Topic, read_topics

READ, WRITE = AclOperation.READ, AclOperation.WRITE
DESCRIBE_CONFIGS = AclOperation.DESCRIBE_CONFIGS


@pytest.mark.parametrize(
    ("allowed", "missing"),
    [
        ([READ, WRITE, DESCRIBE_CONFIGS], None),
        ([READ], "WRITE and DESCRIBE_CONFIGS"),
        ((), "WRITE and READ and DESCRIBE_CONFIGS"),
        (None, None),
    ],
)
def test_a_missing_right_is_named_with_its_topic_and_the_page_unless_the_broker_does_not_say(
    allowed: Collection[AclOperation] | None, missing: str | None
) -> None:
    said = Topic(name="invoices", allowed=allowed).lacks(*TO_RELAY)
    page = "on the topic invoices: docs/security.md, Kafka ACLs"
    assert said == (missing and f"this principal needs {missing} {page}")


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
