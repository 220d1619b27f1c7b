"""The rights that Kafka gives a principal: which one is missing, in words for its operator.

`docs/security.md` lists the rights of each program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from outbox.errors import KafkaForbidden

THE_CLUSTER: Final = "the cluster"
FORBIDDEN: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def needed(operations: str, resource: str) -> str:
    """Return which right is missing, and where the rights are listed."""
    return f"this principal needs {operations} on {resource}: docs/security.md, Kafka ACLs"


def the_topic(name: str) -> str:
    """Return a topic in words."""
    return f"the topic {name}"


@contextmanager
def permitted(operations: str, resource: str) -> Iterator[None]:
    """Raise a KafkaForbidden that names the right that a refusal within the block asks for."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() in FORBIDDEN:
            raise KafkaForbidden(needed(operations, resource)) from error
        raise


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
