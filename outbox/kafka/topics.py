"""What the brokers say of topics: partitions, replicas, settings, and what this principal may do.

`docs/security.md` lists the rights of each program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._topic import TopicDescription

from outbox.kafka.client_config import REQUEST_SECONDS, answered
from outbox.kafka.permission import needed, the_topic

_K = TypeVar("_K")
_T = TypeVar("_T")
TO_READ: Final = (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
"""What every program needs on each topic: its records, and whether it loses some."""
TO_RELAY: Final = (AclOperation.WRITE, *TO_READ)
NO_LEADER: Final = -1
SAFE_REPLICAS: Final = 3
SAFE_IN_SYNC: Final = 2
_MISSING: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic that exists; without partitions, it is hidden from this principal."""

    name: str
    id: str = ""
    partitions: int = 0
    replicas: int = 0
    """of the partition that has the fewest"""
    present: int = 0
    """in-sync replicas of the partition that has the fewest; 0: a partition has no leader"""
    leaders: Sequence[int] = ()
    """The broker that leads each partition, or NO_LEADER."""
    allowed: Collection[Enum] | None = None
    """What this principal may do; None: the broker does not say, and refuses nothing."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Empty: this principal may not read them."""

    @property
    def in_sync(self) -> int | None:
        """Return min.insync.replicas; None: unknown."""
        value = self.settings.get("min.insync.replicas")
        return None if value is None else int(value)

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

    def lacks(self, *required: AclOperation) -> str | None:
        """Return in words which of the required rights are missing; None: all are there."""
        allowed = required if self.allowed is None else self.allowed
        missing = [each.name for each in required if each not in allowed]
        return needed(" and ".join(missing), the_topic(self.name)) if missing else None


def read_topics(admin: AdminClient, names: Collection[str]) -> Mapping[str, Topic]:
    """Return the topics that exist, by name.

    Raises KafkaUnavailable, also for settings that do not come: without them a compacted topic
    would look as if it had lost messages.
    """
    if not names:
        return {}
    described = admin.describe_topics(
        TopicCollection(sorted(names)),
        include_authorized_operations=True,
        request_timeout=REQUEST_SECONDS,
    )
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(names)]
    configured = admin.describe_configs(asked, request_timeout=REQUEST_SECONDS)
    settings = {
        resource.name: {name: str(each.value) for name, each in (entries or {}).items()}
        for resource, entries in _answers(admin, configured)
    }
    return {
        name: _topic(known, settings.get(name, {})) if known else Topic(name=name, allowed=())
        for name, known in _answers(admin, described)
    }


def _answers(
    admin: AdminClient, futures: Mapping[_K, Future[_T]]
) -> Iterator[tuple[_K, _T | None]]:
    """Yield each answer but those about missing topics; None: this principal may not see it."""
    for key, future in futures.items():
        answer = None
        with answered(admin):
            try:
                answer = future.result(2 * REQUEST_SECONDS)
            except KafkaException as error:
                if error.args[0].code() in _MISSING:
                    continue
                if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
        yield key, answer


def weak_topics(topics: Collection[Topic]) -> list[str]:
    """Return in words the topics that do not survive the loss of one broker."""
    return [
        f"{each.name} (replication {each.replicas}, min.insync.replicas {each.in_sync or '-'})"
        for each in topics
        if each.partitions and not each.survives_one_broker
    ]


def _topic(known: TopicDescription, settings: Mapping[str, str]) -> Topic:
    parts = known.partitions
    return Topic(
        name=known.name,
        id=str(known.topic_id),
        partitions=len(parts),
        replicas=min((len(each.replicas) for each in parts), default=0),
        present=min((len(each.isr) if each.leader else 0 for each in parts), default=0),
        leaders=[each.leader.id if each.leader else NO_LEADER for each in parts],
        allowed=known.authorized_operations or None,
        settings=settings,
    )
