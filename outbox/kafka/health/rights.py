"""The rights that the doctor's principal lacks; every program that runs it needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from confluent_kafka.admin._acl import AclOperation

from outbox.kafka.client_config import admin_client
from outbox.kafka.permission import (
    THE_CLUSTER,
    TO_READ,
    missing_rights,
    needed,
    sees_cluster,
)
from outbox.kafka.progress_topic import PROGRESS_TOPIC

TRANSACTIONS: Final = "__transaction_state"
TO_JUDGE: Final = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
"""For the replicas and the settings of a topic that only Kafka reads."""


def missing_rights_to_judge(
    bootstrap_servers: str, kafka_config: Mapping[str, Any], topics: Collection[str]
) -> Sequence[str]:
    """Return in words what is missing to judge the topics and groups. Raises KafkaUnavailable."""
    admin = admin_client(bootstrap_servers, kafka_config)
    required = {**dict.fromkeys(topics, TO_READ), TRANSACTIONS: TO_JUDGE}
    found = missing_rights(admin, required)
    words = [found[name] for name in sorted(found)]
    return (
        words if sees_cluster(admin, PROGRESS_TOPIC) else [*words, needed("DESCRIBE", THE_CLUSTER)]
    )
