"""A topic that the relay may not write to holds back its own messages only."""

from __future__ import annotations

import pytest

from checker.relay.shard_relay import ShardRelay
from outbox.relay.protocol.state import Phase
from tests.fixtures_kafka import committed_records, make_topic
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_forbidden_topic import (
    HELD,
    allow,
    commit_to,
    forbid,
)
from tests.integration.checker.relay.refusals.fixtures_refused_records import due_now

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

HELD_RECORDS = "SELECT count(*) FROM outbox.held_record"


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


def test_f15_a_progress_topic_that_the_relay_may_not_write_to_holds_no_message(
    world: RelayWorld,
) -> None:
    """Kafka's refusal names no topic; each round has failed, so the relay sends no heartbeat."""
    servers = world.bootstrap_servers
    relay = world.relay()
    world.commit_values(b"before")
    drain(relay)
    held = world.one(HELD_RECORDS)
    forbid(servers, world.progress_topic)
    world.commit_values(b"1", b"2")
    rounds = [relay.run_once() for _ in range(5)]
    assert {(each.phase, each.failed, each.published) for each in rounds} == {
        (Phase.VERIFY, True, 0)
    }
    assert world.one(HELD_RECORDS) == held
    allow(servers, world.progress_topic)
    drain(relay)
    assert world.values(3) == [b"before", b"1", b"2"]


def release(world: RelayWorld, relay: ShardRelay, topic: str) -> None:
    """Let the relay retry until no message of the topic is held."""

    def freed() -> bool:
        due_now(world)
        drain(relay)
        return not world.connection.execute(HELD, ([topic],)).fetchall()

    wait_for(freed)
