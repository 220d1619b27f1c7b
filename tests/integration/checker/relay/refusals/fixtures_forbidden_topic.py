"""A topic whose broker forbids to write to it, and what is held for it."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from outbox.kafka.topic_view import KafkaTopicView
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import RelayWorld

FORBIDDEN = (AclOperation.WRITE, AclPermissionType.DENY)
ALLOWED = (AclOperation.ALL, AclPermissionType.ALLOW)
HELD = """
SELECT h.topic_wide, h.publish_error
FROM outbox.held_record h JOIN outbox.topic t ON t.id = h.topic_id
WHERE t.name = ANY (%s) AND h.released_at IS NULL ORDER BY h.xid, h.n
"""


def rule(topic: str, operation: AclOperation, permission: AclPermissionType) -> tuple[object, ...]:
    literal = ResourcePatternType.LITERAL
    return (ResourceType.TOPIC, topic, literal, "User:ANONYMOUS", "*", operation, permission)


def forbid(servers: str, topic: str) -> None:
    """Forbid everybody to write to a topic, and return once the broker obeys."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for each in (ALLOWED, FORBIDDEN):
        binding = AclBinding(*rule(topic, *each))  # type: ignore[arg-type]
        admin.create_acls([binding])[binding].result(timeout=60)
    view = KafkaTopicView(servers, {})
    wait_for(lambda: (seen := view.read([topic]).get(topic)) and seen.may_write is False)


def allow(servers: str, topic: str) -> None:
    """Allow it again."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for each in (FORBIDDEN, ALLOWED):
        found = AclBindingFilter(*rule(topic, *each))  # type: ignore[arg-type]
        admin.delete_acls([found])[found].result(timeout=60)


def commit_to(world: RelayWorld, topic: str, *values: bytes) -> None:
    """Commit a message per value, in one flush."""
    own, world.topic = world.topic, topic
    messages = [world.message(value) for value in values]
    world.topic = own
    world.commit(*messages)
