"""A topic that the relay may not write to holds back its own messages only."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from checker.relay.shard_relay import ShardRelay
from outbox.kafka.topic_view import KafkaTopicView
from outbox.relay.protocol.state import Phase
from tests.fixtures_kafka import committed_records, make_topic
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain, first_batch
from tests.integration.checker.relay.refusals.fixtures_refused_records import drops

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

FORBIDDEN = (AclOperation.WRITE, AclPermissionType.DENY)
ALLOWED = (AclOperation.ALL, AclPermissionType.ALLOW)
HELD_RECORDS = "SELECT count(*) FROM outbox.held_record"
HELD = """
SELECT h.topic_wide, h.publish_error
FROM outbox.held_record h JOIN outbox.topic t ON t.id = h.topic_id
WHERE t.name = ANY (%s) AND h.released_at IS NULL ORDER BY h.xid, h.n
"""
DUE = "UPDATE outbox.held_record SET next_attempt_at = clock_timestamp() WHERE shard = %s"


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


def test_f15_a_topic_that_the_relay_may_not_write_to_is_held_and_all_others_flow(
    world: RelayWorld,
) -> None:
    servers = world.bootstrap_servers
    closed = make_topic(servers, partitions=1)
    relay = world.relay()
    world.commit_values(b"before")
    drain(relay)
    forbid(servers, closed)
    commit_to(world, closed, b"1", b"2")
    world.commit_values(b"3")
    commit_to(world, closed, b"4")
    world.commit_values(b"5")
    drain(relay)
    assert world.values(3) == [b"before", b"3", b"5"]
    rows = world.connection.execute(HELD, ([closed, world.topic],)).fetchall()
    assert rows[0] == (True, "TOPIC_AUTHORIZATION_FAILED")
    assert [wide for wide, _ in rows] == [True, False, False]
    allow(servers, closed)
    release(world, relay, closed)
    assert [record.value for record in committed_records(servers, closed, 3)] == [b"1", b"2", b"4"]


def test_f15_a_forbidden_topic_is_named_among_many_messages_of_others(world: RelayWorld) -> None:
    """Kafka would refuse the transaction and name no topic: so the relay looks before it sends."""
    own, closed = world.topic, make_topic(world.bootstrap_servers, partitions=1)
    forbid(world.bootstrap_servers, closed)
    messages = []
    for number in range(300):
        world.topic = own if number % 3 else closed
        messages.append(world.message(b"%d" % number))
    world.topic = own
    world.commit(*messages)
    drain(world.relay())
    assert world.values(200) == [b"%d" % number for number in range(300) if number % 3]
    rows = world.connection.execute(HELD, ([closed, own],)).fetchall()
    assert rows[0] == (True, "TOPIC_AUTHORIZATION_FAILED")
    assert len(rows) == 100
    assert drops(world, "refused") == 1, "halving a batch of 300 takes nine producers"


def test_f15_a_progress_topic_that_the_relay_may_not_write_to_holds_no_message(
    world: RelayWorld,
) -> None:
    """Kafka's refusal names no topic, and the records travel with their manifest."""
    servers = world.bootstrap_servers
    relay = world.relay()
    world.commit_values(b"before")
    drain(relay)
    held = world.one(HELD_RECORDS)
    forbid(servers, world.progress_topic)
    world.commit_values(b"1", b"2")
    phases = {relay.run_once().phase for _ in range(5)}
    assert phases == {Phase.VERIFY}
    assert world.one(HELD_RECORDS) == held
    allow(servers, world.progress_topic)
    drain(relay)
    assert world.values(3) == [b"before", b"1", b"2"]


def release(world: RelayWorld, relay: ShardRelay, topic: str) -> None:
    """Let the relay retry until no message of the topic is held."""

    def freed() -> bool:
        world.connection.execute(DUE, (SHARD,))
        drain(relay)
        return not world.connection.execute(HELD, ([topic],)).fetchall()

    wait_for(freed)


def test_each_round_in_which_kafka_takes_no_manifest_has_failed(world: RelayWorld) -> None:
    """By this the process knows that its relay makes no progress, and sends no heartbeat."""
    relay = world.relay()
    drain(relay)
    forbid(world.bootstrap_servers, world.progress_topic)
    world.commit_values(b"v")
    rounds = [relay.run_once() for _ in range(3)]
    assert [(each.failed, each.published) for each in rounds] == [(True, 0)] * 3
    allow(world.bootstrap_servers, world.progress_topic)
    assert first_batch(relay) == 1
