"""How durable topics are, and whether they take records: replicas, those in sync, elections."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import REQUEST_SECONDS, admin_client

SAFE_REPLICAS: Final = 3
SAFE_IN_SYNC: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDurability:
    """One topic; None: this principal may not read the setting."""

    topic: str
    replicas: int
    """of the partition that has the fewest"""
    present: int
    """in-sync replicas of the partition that has the fewest; 0: a partition has no leader"""
    in_sync: int | None
    """min.insync.replicas"""
    unclean: bool | None
    """unclean.leader.election.enable"""

    @property
    def survives_one_broker(self) -> bool:
        """Return whether a partition keeps a leader when one broker dies."""
        enough = self.in_sync is None or self.in_sync >= SAFE_IN_SYNC
        return self.replicas >= SAFE_REPLICAS and enough

    @property
    def takes_records(self) -> bool:
        """Return whether each partition has a leader and enough replicas in sync.

        Kafka asks for no more replicas than there are.
        """
        return self.present >= min(self.in_sync or 1, self.replicas)


def weak_topics(topics: Collection[TopicDurability]) -> list[str]:
    """Return in words the topics that do not survive the loss of one broker."""
    return [
        f"{each.topic} (replication {each.replicas}, min.insync.replicas {each.in_sync or '-'})"
        for each in topics
        if not each.survives_one_broker
    ]


def topic_durability(
    bootstrap_servers: str, kafka_config: Mapping[str, Any], topics: Collection[str]
) -> Sequence[TopicDurability]:
    """Return the durability of the topics that exist, by name. Raises KafkaUnavailable."""
    admin = admin_client(bootstrap_servers, kafka_config)
    try:
        known = admin.list_topics(timeout=REQUEST_SECONDS).topics
    except KafkaException as error:
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
    found = sorted(name for name in topics if name in known and known[name].partitions)
    settings = _settings(admin, found)
    return [
        TopicDurability(
            topic=name,
            replicas=min(len(each.replicas) for each in known[name].partitions.values()),
            present=min(_in_sync(each) for each in known[name].partitions.values()),
            in_sync=_number(settings.get(name, {}).get("min.insync.replicas")),
            unclean=_flag(settings.get(name, {}).get("unclean.leader.election.enable")),
        )
        for name in found
    ]


def _settings(admin: AdminClient, topics: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each topic that shows them to this principal."""
    if not topics:
        return {}
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    settings: dict[str, Mapping[str, Any]] = {}
    for resource, future in admin.describe_configs(asked, request_timeout=REQUEST_SECONDS).items():
        try:
            entries = future.result(timeout=2 * REQUEST_SECONDS)
        except (KafkaException, TimeoutError):
            continue
        settings[resource.name] = {name: entry.value for name, entry in entries.items()}
    return settings


def _in_sync(partition: Any) -> int:
    """Return how many replicas of a partition are in sync; none without a leader."""
    return len(partition.isrs) if partition.leader >= 0 else 0


def _number(value: object) -> int | None:
    return None if value is None else int(str(value))


def _flag(value: object) -> bool | None:
    return None if value is None else value == "true"
