"""The rights that Kafka gives a principal: which one is missing, in words for its operator.

`docs/security.md` lists the rights of each program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from enum import Enum
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from outbox.errors import KafkaForbidden, KafkaUnavailable
from outbox.kafka.client_config import REQUEST_SECONDS

TO_READ: Final = (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
"""What every program needs on each topic: its records, and whether it loses some."""
TO_RELAY: Final = (AclOperation.WRITE, *TO_READ)
THE_CLUSTER: Final = "the cluster"
FORBIDDEN: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_OF_CLUSTER: Final = AclBindingFilter(
    ResourceType.BROKER,
    "kafka-cluster",
    ResourcePatternType.MATCH,
    None,  # type: ignore[arg-type]
    None,  # type: ignore[arg-type]
    AclOperation.ANY,
    AclPermissionType.ANY,
)
_NO_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION})


def needed(operations: str, resource: str) -> str:
    """Return which right is missing, and where the rights are listed."""
    return f"this principal needs {operations} on {resource}: docs/security.md, Kafka ACLs"


def the_topic(name: str) -> str:
    """Return a topic in words."""
    return f"the topic {name}"


def lacking(allowed: Collection[Enum] | None, required: Sequence[AclOperation]) -> str | None:
    """Return those of the required operations that are not allowed, in words; None: all are.

    A broker that does not say what is allowed refuses nothing here.
    """
    missing = [each.name for each in required if allowed and each not in allowed]
    return " and ".join(missing) or None


@contextmanager
def permitted(operations: str, resource: str) -> Iterator[None]:
    """Raise a KafkaForbidden that names the right that a refusal within the block asks for."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() in FORBIDDEN:
            raise KafkaForbidden(needed(operations, resource)) from error
        raise


def missing_rights(
    admin: AdminClient, required: Mapping[str, Sequence[AclOperation]]
) -> Mapping[str, str]:
    """Return by topic what this principal lacks there, in words; a missing topic is left out.

    Raises KafkaUnavailable.
    """
    if not required:
        return {}
    futures = admin.describe_topics(
        TopicCollection(sorted(required)),
        include_authorized_operations=True,
        request_timeout=REQUEST_SECONDS,
    )
    found = {name: _missing(future, required[name]) for name, future in futures.items()}
    return {name: needed(each, the_topic(name)) for name, each in found.items() if each}


def sees_cluster(admin: AdminClient, topic: str) -> bool:
    """Return whether this principal has DESCRIBE on the cluster; without it groups are hidden.

    Who has the right sees at least the rule that gives it. librdkafka shows a refusal as no rules,
    so one who may even delete our ``topic`` is taken for one whom no rule binds. Other requests
    would say more, but librdkafka's code for them can end the process.
    """
    try:
        rules = admin.describe_acls(_OF_CLUSTER, request_timeout=REQUEST_SECONDS)
        if rules.result(2 * REQUEST_SECONDS):
            return True
    except KafkaException as error:
        return bool(error.args[0].code() != KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    except TimeoutError as error:
        raise KafkaUnavailable("Kafka did not answer in time") from error
    return not missing_rights(admin, {topic: (AclOperation.DELETE,)})


def next_event(consumer: Consumer, seconds: float) -> Message | None:
    """Return the next record or event of the assigned partitions; None: none came in time.

    We join no group, so we need no right for one; the library asks for it all the same. Raises
    KafkaForbidden for a topic that this principal may not read.
    """
    deadline = monotonic() + seconds
    while True:
        message = consumer.poll(max(0.0, deadline - monotonic()))
        error = None if message is None else message.error()
        if message is None or error is None:
            return message
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise KafkaForbidden(needed("READ", the_topic(message.topic() or "of the log")))
        if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            return message


def _missing(future: Future[Any], required: Sequence[AclOperation]) -> str | None:
    try:
        return lacking(future.result(2 * REQUEST_SECONDS).authorized_operations, required)
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return lacking([AclOperation.ANY], required)
        if code in _NO_TOPIC:
            return None
        raise KafkaUnavailable(f"Kafka: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailable("Kafka did not answer in time") from error
