"""The brokers' facts of topics: ids, partitions, cleanup policies. One thread, bounded time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._topic import TopicDescription

from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import REQUEST_SECONDS
from outbox.kafka.permission import TO_READ, lacking, needed, the_topic
from outbox.reconciliation.log import TopicFacts

CLEANUP: Final = "cleanup.policy"
MISSING: Final = KafkaError.UNKNOWN_TOPIC_OR_PART
UNREADABLE: Final = frozenset(
    {MISSING, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_EXCEPTION}
)
"""Answers about a topic's settings that the description of the topic itself explains."""


def describe(admin: AdminClient, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
    """Return the facts of existing topics, or the right that is missing to judge one.

    Raises KafkaUnavailable.
    """
    if not topics:
        return {}
    futures = admin.describe_topics(
        TopicCollection(sorted(topics)),
        include_authorized_operations=True,
        request_timeout=REQUEST_SECONDS,
    )
    settings = _settings(admin, topics)
    facts: dict[str, TopicFacts | str] = {}
    for name, future in futures.items():
        try:
            known = future.result(timeout=2 * REQUEST_SECONDS)
        except KafkaException as error:
            _note(facts, name, error)
        except TimeoutError as error:
            raise KafkaUnavailable(f"Kafka does not describe {name}") from error
        else:
            facts[name] = _facts(known, settings.get(name, ""))
    return facts


def _facts(known: TopicDescription, policy: str) -> TopicFacts | str:
    """Return the facts, or the right that is missing.

    Without its settings a compacted topic would look as if it had lost messages.
    """
    missing = lacking(known.authorized_operations, TO_READ)
    if missing is not None:
        return needed(missing, the_topic(known.name))
    return TopicFacts(
        id=str(known.topic_id),
        partitions=len(known.partitions),
        compacts="compact" in policy,
    )


def _note(facts: dict[str, TopicFacts | str], name: str, error: KafkaException) -> None:
    code = error.args[0].code()
    if code == MISSING:
        return
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        facts[name] = needed("READ and DESCRIBE_CONFIGS", the_topic(name))
    elif code == KafkaError.TOPIC_EXCEPTION:
        facts[name] = str(error.args[0].str())
    else:
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error


def _settings(admin: AdminClient, topics: Collection[str]) -> Mapping[str, str]:
    """Return the cleanup policy of each topic whose settings are readable.

    Raises KafkaUnavailable: a topic whose settings do not come in time may be a compacted one.
    """
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)]
    futures = admin.describe_configs(asked, request_timeout=REQUEST_SECONDS)
    found: dict[str, str] = {}
    for resource, future in futures.items():
        try:
            settings = future.result(timeout=2 * REQUEST_SECONDS)
        except TimeoutError as error:
            raise KafkaUnavailable(f"Kafka does not describe {resource.name}") from error
        except KafkaException as error:
            if error.args[0].code() not in UNREADABLE:
                raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
            continue
        found[resource.name] = settings[CLEANUP].value or ""
    return found
