"""A refused record delays only its own topic and key, until Kafka accepts it."""

from __future__ import annotations

import signal

import pytest

from outbox.messages.manifest import PUBLISHED_BEFORE, Kind
from tests.fixtures_kafka import read_committed
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain, until
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    commit,
    drain_until_free,
    due_now,
    heads,
    large,
    lower,
    manifests,
    open_rows,
    raise_again,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def test_f15_a_record_too_large_is_held_with_its_key_and_all_others_flow(
    world: RelayWorld,
) -> None:
    lower(world)
    commit(world, b"a", b"1", large(2), b"3")
    commit(world, b"b", b"4")
    drain(world.relay())
    commit(world, b"a", b"5")
    drain(world.relay_again())
    assert heads(world, 2) == [b"1", b"4"]
    rows = world.connection.execute(
        "SELECT publish_error, attempts FROM outbox.held_record WHERE shard = 3 ORDER BY xid, n"
    ).fetchall()
    assert rows[0] == ("MSG_SIZE_TOO_LARGE", 1)
    assert [attempts for _, attempts in rows] == [1, 0, 0]
    assert world.one("SELECT sum(cardinality(half_ids)) FROM outbox.publication_log") == 2
    refused = world.metrics["publish_errors_total"].labels(world.topic, "MSG_SIZE_TOO_LARGE")
    assert refused._value.get() > 0


def test_f15_a_released_record_comes_before_what_waited_and_that_before_what_came_later(
    world: RelayWorld,
) -> None:
    lower(world)
    commit(world, b"a", large(1), b"2", large(3))
    relay = world.relay()
    drain(relay)
    raise_again(world)
    commit(world, b"a", b"4")
    relay.close()
    drain_until_free(world)
    commit(world, b"a", b"5")
    drain(world.relay())
    assert heads(world, 5) == [b"1", b"2", b"3", b"4", b"5"]
    kinds = [manifest.kind for manifest in manifests(world, 4)]
    assert Kind.RELEASE in kinds
    for manifest in manifests(world, len(kinds)):
        if manifest.kind is Kind.RELEASE:
            assert manifest.after == manifest.to
    refused, *_ = read_committed(world.bootstrap_servers, world.topic, 5)
    place = world.connection.execute(
        "SELECT released_partition, released_offset FROM outbox.held_record"
        " WHERE shard = 3 ORDER BY xid, n LIMIT 1"
    ).fetchone()
    assert place == (refused.partition(), refused.offset())


def test_f15_a_record_without_a_key_delays_no_other(world: RelayWorld) -> None:
    lower(world)
    commit(world, None, large(1), b"2", b"3")
    drain(world.relay())
    assert sorted(heads(world, 2)) == [b"2", b"3"]
    assert open_rows(world) == 1


def test_f15_a_refused_retry_waits_longer_and_the_scope_stays_held(world: RelayWorld) -> None:
    lower(world)
    commit(world, b"a", large(1), b"2")
    relay = world.relay()
    drain(relay)
    due_now(world)

    def tried_again() -> bool:
        drain(relay)
        return bool(world.one("SELECT max(attempts) = 2 FROM outbox.held_record WHERE shard = 3"))

    until(tried_again, seconds=60)
    wait = "SELECT extract(epoch FROM next_attempt_at - clock_timestamp()) FROM outbox.held_record"
    assert 5 < float(world.one(f"{wait} WHERE shard = 3 AND attempts = 2")) <= 10
    assert world.values(0) == []


def test_a_release_lists_what_kafka_has_already_and_does_not_publish_it_again(
    world: RelayWorld,
) -> None:
    lower(world)
    first, _ = commit(world, b"a", large(1), b"2")
    relay = world.relay()
    drain(relay)
    relay.close()
    world.connection.execute(
        "INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)"
        " SELECT half_id, nonce, %s, 0 FROM outbox.half_message WHERE half_id = %s",
        (SHARD, first),
    )
    due_now(world)
    drain_until_free(world)
    assert heads(world, 1) == [b"2"]
    statuses = [entry.status for made in manifests(world, 2) for entry in made.entries]
    assert PUBLISHED_BEFORE in statuses


@pytest.mark.chaos
@pytest.mark.parametrize(
    "point",
    [
        "relay.after_hold=kill#1",
        pytest.param("relay.after_commit=kill#2", marks=pytest.mark.deep),
    ],
)
def test_a_relay_that_dies_at_a_step_of_hold_or_release_loses_and_doubles_nothing(
    world: RelayWorld, point: str
) -> None:
    world.batch_max = 2
    lower(world)
    commit(world, b"a", large(1), b"2", b"3", large(4), b"5")
    commit(world, b"b", b"6")
    if "hold=" in point:
        with world.process(point) as process:
            assert process.wait(timeout=60) == -signal.SIGKILL
    holder = world.relay_again()
    drain(holder)
    holder.close()
    raise_again(world)
    if "hold=" not in point:
        with world.process(point) as process:
            assert process.wait(timeout=60) == -signal.SIGKILL
    raise_again(world)
    drain_until_free(world)
    published = heads(world, 6)
    assert sorted(published) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert [each for each in published if each != b"6"] == [b"1", b"2", b"3", b"4", b"5"]
