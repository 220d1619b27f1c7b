"""The mode at_least_once: nothing is lost, nothing else published; a crash repeats records."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Sequence

import pytest

from outbox.messages.manifest import crc_of, decode, encode
from outbox.messages.record import Record
from outbox.relay.protocol.state import NO_MANIFESTS
from tests.fixtures_kafka import read_committed
from tests.integration.checker.relay.fixtures_backlog import (
    KEYS,
    commit_backlog,
    published_up_to,
    wait_running,
)
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.settlement.fixtures_lost_record import PAST, lose_the_record
from tests.integration.checker.relay.settlement.fixtures_unseen_batches import (
    listed,
    past_values,
    record_headers,
    transaction,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


COUNTED = """
UPDATE outbox.progress SET position = %s, position_n = %s, batch_no = %s, crc = %s,
    manifest_offset = manifest_offset + 2 WHERE name = 'relay:3'
"""
"""What the owner stores after the next batch: after its manifest come the markers."""


@pytest.fixture
def unlisted(world: RelayWorld) -> RelayWorld:
    """A world whose relays publish at least once."""
    world.delivery = "at_least_once"
    return world


def manifests(world: RelayWorld, expected: int) -> list[int]:
    """Return the numbers of the batches that manifests list."""
    found = read_committed(world.bootstrap_servers, world.progress_topic, expected)
    return [decode(bytes(message.value() or b"")).batch_no for message in found]


def manifest_offset(world: RelayWorld) -> int:
    """Return the stored mark of the mode at_least_once, or the offset of the next manifest."""
    return int(world.one("SELECT manifest_offset FROM outbox.progress WHERE name = 'relay:3'"))


def first_seen(records: Sequence[Record]) -> list[int]:
    """Return the numbers in the order in which a reader first sees them."""
    return list(dict.fromkeys(int(record.value or b"") for record in records))


def assert_complete_and_in_order(records: Sequence[Record], count: int) -> None:
    """Each number at least once; the first records of a key ascend."""
    numbers = first_seen(records)
    assert sorted(numbers) == list(range(count))
    for key in range(KEYS):
        of_key = [n for n in numbers if n % KEYS == key]
        assert of_key == sorted(of_key)


def test_at_least_once_publishes_everything_in_order_without_a_manifest(
    unlisted: RelayWorld,
) -> None:
    commit_backlog(unlisted, range(1000))
    relay = unlisted.relay()
    drain(relay)
    relay.close()
    records = unlisted.records(1000)
    assert len(records) == 1000
    assert_complete_and_in_order(records, 1000)
    assert published_up_to(unlisted) == 1000
    assert manifest_offset(unlisted) == NO_MANIFESTS
    assert manifests(unlisted, 0) == []


def test_a_record_of_at_least_once_names_no_batch(unlisted: RelayWorld) -> None:
    unlisted.commit_values(b"one")
    drain(unlisted.relay())
    (record,) = unlisted.records(1)
    assert [name for name, _ in record.headers] == [
        "outbox_message_id",
        "outbox_decided_by",
        "outbox_producer_group",
    ]


def test_what_nobody_committed_is_not_published(unlisted: RelayWorld) -> None:
    unlisted.commit_values(b"one", b"two")
    unlisted.connection.execute(
        "DELETE FROM outbox.commit_log WHERE xid = (SELECT max(xid) FROM outbox.commit_log)"
    )
    unlisted.commit_values(b"three")
    drain(unlisted.relay())
    assert unlisted.values(1) == [b"three"]


def test_a_kill_between_acknowledgement_and_cursor_repeats_and_loses_nothing(
    unlisted: RelayWorld,
) -> None:
    unlisted.batch_max = 10
    commit_backlog(unlisted, range(100))
    with unlisted.process("relay.after_data_flush=kill#3") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    drain(unlisted.relay())
    records = unlisted.records(110)
    assert len(records) > 100
    assert_complete_and_in_order(records, 100)


@pytest.mark.deep
def test_kills_at_any_moment_lose_nothing_and_keep_the_order_of_first_records(
    unlisted: RelayWorld,
) -> None:
    unlisted.batch_max = 10
    commit_backlog(unlisted, range(2000))
    chance, pause = random.Random(7), threading.Event()
    for _ in range(3):
        with unlisted.process() as process:
            wait_running(process)
            pause.wait(chance.uniform(0.02, 0.3))
            process.kill()
    unlisted.batch_max = 500
    drain(unlisted.relay())
    assert_complete_and_in_order(unlisted.records(2000), 2000)


def test_a_relay_that_stops_in_good_order_repeats_nothing(unlisted: RelayWorld) -> None:
    unlisted.commit_values(b"one")
    drain(unlisted.relay())
    unlisted.commit_values(b"two")
    drain(unlisted.relay_again())
    assert unlisted.values(2) == [b"one", b"two"]


def test_a_record_that_kafka_refuses_is_held_with_its_key(unlisted: RelayWorld) -> None:
    unlisted.commit_values(b"x" * 1_100_000)
    unlisted.commit_values(b"behind it")
    unlisted.commit(unlisted.message(b"other", b"other"))
    drain(unlisted.relay())
    assert unlisted.values(1) == [b"other"]
    assert unlisted.one("SELECT count(*) FROM outbox.held_record WHERE shard = 3") == 2


# -- From one delivery mode to the other -----------------------------------------------------------


def test_the_lane_goes_on_where_exactly_once_stood(world: RelayWorld) -> None:
    first = world.next_batch()
    world.commit_values(b"one")
    drain(world.relay())
    world.delivery = "at_least_once"
    world.commit_values(b"two")
    drain(world.relay_again())
    assert world.values(2) == [b"one", b"two"]
    assert [f"{SHARD}.{number}" for number in manifests(world, 1)] == [first]


def test_exactly_once_continues_after_at_least_once_and_lists_its_batches_again(
    world: RelayWorld,
) -> None:
    for value, delivery in enumerate(("exactly_once", "at_least_once", "exactly_once")):
        world.delivery = delivery
        world.commit_values(b"%d" % value)
        drain(world.relay_again())
    assert world.values(3) == [b"0", b"1", b"2"]
    before, after = manifests(world, 2)
    assert before < after
    drain(world.relay_again())
    assert world.values(3) == [b"0", b"1", b"2"]


def test_what_exactly_once_published_and_no_consumer_sees_is_published_again_on_entering(
    world: RelayWorld,
) -> None:
    """The last owner had stored that the batch is published; then its transaction was aborted."""
    manifest = lose_the_record(world)
    stored = (*manifest.to, manifest.batch_no, crc_of(encode(manifest)))
    world.connection.execute(COUNTED, stored)
    world.delivery = "at_least_once"
    drain(world.relay())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]
    assert manifest_offset(world) == NO_MANIFESTS
    drain(world.relay_again())
    assert len(world.values(PAST + 1)) == PAST + 1


@pytest.mark.deep
def test_a_batch_that_hangs_is_ended_before_the_mode_is_entered(world: RelayWorld) -> None:
    message, manifest = listed(world, PAST)
    world.delivery = "at_least_once"
    with transaction(world) as hanging:
        hanging.produce(world.topic, b"v", b"key", headers=record_headers(message, manifest))
        hanging.flush()
        relay = world.relay()
        for _ in range(2):
            relay.run_once()
        assert manifest_offset(world) != NO_MANIFESTS
        hanging.abort_transaction()
    drain(relay)
    assert manifest_offset(world) == NO_MANIFESTS
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]


@pytest.mark.deep
@pytest.mark.parametrize("step", ["relay.after_settle", "relay.after_repair_order"])
def test_a_relay_that_dies_on_entering_loses_no_repair(world: RelayWorld, step: str) -> None:
    lose_the_record(world)
    world.delivery = "at_least_once"
    with world.process(f"{step}=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    drain(world.relay())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]


def test_what_only_manifests_know_is_not_published_again_on_entering(world: RelayWorld) -> None:
    world.batch_max = 10
    commit_backlog(world, range(100))
    with world.process("relay.after_commit=kill#4") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    world.delivery = "at_least_once"
    drain(world.relay())
    assert len(world.records(100)) == 100
    world.delivery = "exactly_once"
    world.commit(world.message(b"100", b"key-2"))
    drain(world.relay_again())
    listed = manifests(world, 5)
    assert listed == sorted(set(listed))
    assert_complete_and_in_order(world.records(101), 101)


@pytest.mark.deep
def test_a_lane_that_was_killed_is_left_without_a_loss(world: RelayWorld) -> None:
    world.batch_max, world.delivery = 10, "at_least_once"
    commit_backlog(world, range(100))
    with world.process("relay.after_data_flush=kill#3") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    world.delivery = "exactly_once"
    relay = world.relay()
    drain(relay)
    relay.close()
    assert_complete_and_in_order(world.records(110), 100)
    assert published_up_to(world) == 100
