"""The topic `outbox.progress`: the relay's manifests, one partition per shard, never compacted.

`outbox migrate up` creates it; the relay never creates a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from outbox.errors import KafkaForbidden
from outbox.kafka.client_config import (
    REQUEST_SECONDS,
    TRANSACTION_SECONDS,
    admin_client,
    answered,
)
from outbox.kafka.permission import THE_CLUSTER, needed, permitted, the_topic
from outbox.kafka.topics import read_topics
from outbox.operators.health_check import HealthCheck, health_check

VERIFICATION: Final = "transaction.partition.verification.enable"
MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
NOT_SHOWN: Final = "-"
"""A setting that the server does not show is not judged."""
PROGRESS_TOPIC: Final = "outbox.progress"
PARTITIONS: Final = 16
RETENTION_MS: Final = 30 * 24 * 3600 * 1000
NO_LIMIT: Final = "-1"
"""The cluster's default would delete manifests by their size, whatever their age."""
REPLICATION: Final = 3
ZOOKEEPER: Final = "zookeeper.connect"
"""A setting that brokers know up to 3.9. A newer broker may still have it in its file, but hides
its value, as with every unknown setting."""
CORDONED: Final = "cordoned.log.dirs"
"""A setting that brokers know from 4.3 on (KIP-1066)."""
DEFAULT_MAX_TIMEOUT_SECONDS: Final = 900.0
TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressTopicFacts:
    """The facts of the cluster and its progress topic."""

    brokers: int
    topics: int
    partitions: int
    settings: Mapping[str, str]
    partition_verification: str
    """`transaction.partition.verification.enable`; "false" if one broker has it."""
    older_than_4: bool
    """At least one broker is."""
    newer_than_4_2: bool = False
    """At least one broker is: 4.3.0, 4.3.1 and 4.4.0 leave transactions open (ADR 0017)."""
    transaction_limits: Sequence[float] = (DEFAULT_MAX_TIMEOUT_SECONDS,)
    """`transaction.max.timeout.ms` (s) of the brokers that show it; else Kafka's default."""


def ensure_progress_topic(
    bootstrap_servers: str,
    kafka_config: Mapping[str, Any] | None = None,
    *,
    replication: int | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> bool:
    """Create the topic if it is missing; return whether it was created.

    `replication` None takes three replicas, or as many as the cluster has brokers. Raises
    KafkaUnavailable if Kafka does not answer in time or refuses.
    """
    admin = admin_client(bootstrap_servers, kafka_config or {})
    with answered(admin):
        known = admin.list_topics(timeout=timeout_seconds)
        if PROGRESS_TOPIC in known.topics:
            return False
        return _create(admin, replication or min(REPLICATION, len(known.brokers)), timeout_seconds)


def progress_topic_facts(
    bootstrap_servers: str,
    kafka_config: Mapping[str, Any] | None = None,
) -> ProgressTopicFacts:
    """Return the cluster's facts of the topic; 0 partitions if it is missing.

    Raises KafkaUnavailable.
    """
    admin = admin_client(bootstrap_servers, kafka_config or {})
    with answered(admin):
        known = admin.list_topics(timeout=REQUEST_SECONDS)
        topic = known.topics.get(PROGRESS_TOPIC)
        brokers = _broker_settings(admin, known.brokers)
        limits = [int(each[MAX_TIMEOUT]) / 1000 for each in brokers if MAX_TIMEOUT in each]
        return ProgressTopicFacts(
            brokers=len(known.brokers),
            topics=len(known.topics),
            partitions=len(topic.partitions) if topic else 0,
            settings=_stored_settings(admin) if topic else {},
            partition_verification=_verification(brokers),
            older_than_4=any(ZOOKEEPER in broker for broker in brokers),
            newer_than_4_2=any(CORDONED in broker for broker in brokers),
            transaction_limits=limits or (DEFAULT_MAX_TIMEOUT_SECONDS,),
        )


def safety_of(facts: ProgressTopicFacts) -> tuple[HealthCheck, ...]:
    """Judge the facts that the guarantees depend on."""
    version = "older than 4.0" if facts.older_than_4 else "4.0 or newer"
    limit, verifies = min(facts.transaction_limits), facts.partition_verification
    detail = f"{1000 * limit:.0f}, {1000 * TRANSACTION_SECONDS:.0f} or more wanted"
    policy = facts.settings.get("cleanup.policy", NOT_SHOWN)
    return (
        health_check("kafka version", not facts.older_than_4, version),
        health_check(VERIFICATION, verifies != "false", verifies),
        health_check(MAX_TIMEOUT, limit >= TRANSACTION_SECONDS, detail),
        health_check("cleanup.policy", policy in ("delete", NOT_SHOWN), policy),
    )


def topic_settings(replication: int) -> dict[str, str]:
    """Return the topic's settings for this number of replicas."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(RETENTION_MS),
        "retention.bytes": NO_LIMIT,
        "min.insync.replicas": "2" if replication >= REPLICATION else "1",
        "unclean.leader.election.enable": "false",
    }


def _stored_settings(admin: AdminClient) -> Mapping[str, str]:
    topic = read_topics(admin, [PROGRESS_TOPIC])[PROGRESS_TOPIC]
    if not topic.settings:
        raise KafkaForbidden(needed("DESCRIBE_CONFIGS", the_topic(PROGRESS_TOPIC)))
    return topic.settings


def _broker_settings(admin: AdminClient, brokers: Iterable[int]) -> list[dict[str, str]]:
    """Return the visible settings of each broker; the library takes one broker per call."""
    asked = (ConfigResource(ResourceType.BROKER, str(broker)) for broker in brokers)
    futures = [admin.describe_configs([broker])[broker] for broker in asked]
    with permitted("DESCRIBE_CONFIGS", THE_CLUSTER):
        answers = [future.result(timeout=REQUEST_SECONDS) for future in futures]
    return [
        {name: str(entry.value) for name, entry in entries.items() if not entry.is_sensitive}
        for entries in answers
    ]


def _verification(brokers: Iterable[Mapping[str, str]]) -> str:
    values = {broker.get(VERIFICATION, NOT_SHOWN) for broker in brokers}
    return "false" if "false" in values else next(iter(values), NOT_SHOWN)


def _create(admin: AdminClient, replication: int, timeout_seconds: float) -> bool:
    """Create the topic; return False if another caller was first."""
    topic = NewTopic(
        PROGRESS_TOPIC,
        num_partitions=PARTITIONS,
        replication_factor=replication,
        config=topic_settings(replication),
    )
    done = admin.create_topics([topic], operation_timeout=timeout_seconds)
    try:
        with permitted("CREATE", the_topic(PROGRESS_TOPIC)):
            done[PROGRESS_TOPIC].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True
