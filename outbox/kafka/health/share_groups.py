"""Share groups that read uncommitted records, which is Kafka's default for them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import REQUEST_SECONDS, admin_client
from outbox.kafka.permission import sees_cluster
from outbox.kafka.progress_topic import PROGRESS_TOPIC

ISOLATION: Final = "share.isolation.level"
READS_COMMITTED: Final = "read_committed"


def dirty_share_groups(
    bootstrap_servers: str, kafka_config: Mapping[str, Any]
) -> Sequence[str] | None:
    """Return the share groups that read uncommitted records; None: not all of this is shown.

    Raises KafkaUnavailable.
    """
    admin = admin_client(bootstrap_servers, kafka_config)
    if not sees_cluster(admin, PROGRESS_TOPIC):
        return None
    groups = _share_groups(admin)
    try:
        return [each for each in groups if _isolation(admin, each) != READS_COMMITTED]
    except (KafkaException, TimeoutError):
        return None


def _share_groups(admin: AdminClient) -> Sequence[str]:
    """Return the groups of a type that the library does not know: share groups.

    Groups of Kafka Streams' own protocol look the same; the setting means nothing to them.
    """
    try:
        with warnings.catch_warnings():
            # The successor of this call leaves such groups out.
            warnings.simplefilter("ignore", DeprecationWarning)
            found = admin.list_groups(timeout=REQUEST_SECONDS)
        asked = admin.list_consumer_groups(request_timeout=REQUEST_SECONDS)
        known = {each.group_id for each in asked.result(timeout=2 * REQUEST_SECONDS).valid}
    except KafkaException as error:
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailable("Kafka did not answer in time") from error
    unknown = (each for each in found if not each.protocol_type and each.id not in known)
    return sorted(str(each.id) for each in unknown)


def _isolation(admin: AdminClient, group: str) -> str | None:
    """Return the group's setting; None from a broker that does not know it (4.1 and older)."""
    asked = ConfigResource(ResourceType.GROUP, group)
    answer = admin.describe_configs([asked], request_timeout=REQUEST_SECONDS)[asked]
    entry = answer.result(timeout=2 * REQUEST_SECONDS).get(ISOLATION)
    return None if entry is None else str(entry.value)
