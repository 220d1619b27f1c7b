"""The brokers' facts of topics: ids, partitions, cleanup policies. One thread, bounded time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.reconciliation.log import TopicFacts

REQUEST_SECONDS: Final = 10.0
MISSING: Final = KafkaError.UNKNOWN_TOPIC_OR_PART
REFUSED: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_EXCEPTION)


def describe(admin: AdminClient, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
    """Return the facts of existing topics, or the reason why access to one is refused.

    Raises KafkaUnavailable.
    """
    if not topics:
        return {}
    futures = admin.describe_topics(
        TopicCollection(sorted(topics)), request_timeout=REQUEST_SECONDS
    )
    compacting = _compacting(admin, topics)
    facts: dict[str, TopicFacts | str] = {}
    for name, future in futures.items():
        try:
            known = future.result(timeout=2 * REQUEST_SECONDS)
        except KafkaException as error:
            _note(facts, name, error)
        except TimeoutError as error:
            raise KafkaUnavailable(f"Kafka does not describe {name}") from error
        else:
            facts[name] = TopicFacts(
                id=str(known.topic_id),
                partitions=len(known.partitions),
                compacts=name in compacting,
            )
    return facts


def _note(facts: dict[str, TopicFacts | str], name: str, error: KafkaException) -> None:
    code = error.args[0].code()
    if code == MISSING:
        return
    if code not in REFUSED:
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
    facts[name] = str(error.args[0].str())


def _compacting(admin: AdminClient, topics: Collection[str]) -> frozenset[str]:
    """Return the compacted topics; a topic with unreadable settings counts as not compacted."""
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)]
    futures = admin.describe_configs(asked, request_timeout=REQUEST_SECONDS)
    found: set[str] = set()
    for resource, future in futures.items():
        try:
            policy = future.result(timeout=2 * REQUEST_SECONDS)["cleanup.policy"].value
        except (KafkaException, TimeoutError):
            continue
        if "compact" in (policy or ""):
            found.add(resource.name)
    return frozenset(found)
