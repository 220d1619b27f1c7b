"""What Kafka has acknowledged and consumers do not see: it is reported, and never lost or doubled.

A broker that skips the marker of a transaction leaves logs as these tests write them by hand: a
committed manifest beside an aborted record, or the other way round.
"""

from __future__ import annotations

import time
from typing import Final

import pytest
from confluent_kafka import Message

from outbox.messages.manifest import Kind, decode
from outbox.messages.murmur2 import partition_of
from tests.aged_installation.fixtures_log_starts import write_foreign
from tests.fixtures_kafka import delete_all_records, make_topic, read_committed
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain, until
from tests.integration.checker.relay.settlement.fixtures_unseen_batches import (
    REPAIRED,
    abort_record,
    listed,
    message_text,
    own_headers,
    past_values,
    record_headers,
    transaction,
    unconfirmed_seconds,
    write_hung_manifest,
    write_manifest,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

VISIBLE: Final = "SELECT visible_batch_no FROM outbox.progress WHERE name = 'relay:3'"
LEARNED: Final = "SELECT count(*) FROM outbox.already_published WHERE shard = 3"
HOME: Final = partition_of(b"key", 2)
OTHER: Final = 1 - HOME
PASTS: Final = pytest.mark.parametrize(
    "past",
    [pytest.param(0, id="first batch", marks=pytest.mark.deep), pytest.param(3, id="fourth batch")],
)


def test_a_batch_behind_an_open_transaction_is_published_and_not_yet_visible(
    world: RelayWorld,
) -> None:
    builder = world.builder()
    relay = builder.open(SHARD)
    world.opened.append(relay)
    drain(relay)
    before = world.one(VISIBLE)
    with transaction(world) as stranger:
        stranger.produce(world.topic, b"foreign")
        stranger.flush()
        world.commit_values(b"v")
        drain(relay)
        builder.visibility.look()
        assert unconfirmed_seconds(world) > 0
        drain(relay)
        assert world.one(VISIBLE) == before
        stranger.abort_transaction()
    until(lambda: looked(world, builder.visibility.look) == 0)
    until(lambda: (drain(relay), world.one(VISIBLE))[1] == before + 1)


@PASTS
def test_what_a_committed_manifest_lists_and_no_consumer_sees_is_published_again(
    world: RelayWorld, past: int
) -> None:
    """The loss: a marker was skipped, and the next abort took the records with it."""
    message, manifest = listed(world, past)
    abort_record(world, message, manifest)
    write_manifest(world, manifest, commit=True)
    drain(world.relay())
    record = world.records(past + 1)[past]
    headers = dict(record.headers)
    assert (record.value, headers["outbox_message_id"].decode()) == (b"v", message)
    assert headers["outbox_redriven"].startswith(b"relay-3-")
    assert world.one(REPAIRED) == 1
    drain(world.relay_again())
    assert len(world.records(past + 1)) == past + 1
    kinds = [decode(bytes(m.value() or b"")).kind for m in manifests(world, past + 2)]
    assert kinds == [Kind.BATCH] * (past + 1) + [Kind.REPAIR]


@PASTS
def test_what_never_arrived_beside_a_committed_manifest_is_published_again(
    world: RelayWorld, past: int
) -> None:
    """The relay died while both were sent, and the manifest's marker was skipped."""
    _, manifest = listed(world, past)
    write_hung_manifest(world, manifest)
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(past + 1) == [*past_values(past), b"v"]
    assert world.one(REPAIRED) == 1


@pytest.mark.parametrize(
    ("emptied", "hours", "published"),
    [(OTHER, 24, 1), (OTHER, 1, 0), (HOME, 24, 0)],
    ids=["another partition", "another partition of a new topic", "its own partition"],
)
def test_what_never_arrived_is_published_again_unless_its_own_partition_is_trimmed(
    world: RelayWorld,
    emptied: int,
    hours: int,
    published: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A key names one partition: what retention removed from another one explains nothing.

    In a new topic it may name another one than the relay knew.
    """
    world.topic = make_topic(world.bootstrap_servers, partitions=2)
    _, manifest = listed(world, past=0)
    for partition in (HOME, OTHER):
        write_old(world, partition, hours)
    delete_all_records(world.bootstrap_servers, world.topic, emptied)
    write_hung_manifest(world, manifest)
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(published + 1).count(b"v") == published
    assert world.one(REPAIRED) == published
    named = "publication_unproven" in "".join(capsys.readouterr())
    assert named is not bool(published)


def test_what_is_absent_is_published_again_though_the_log_begins_with_its_batch(
    world: RelayWorld,
) -> None:
    """Retention had emptied the topic before, which explains nothing about this message."""
    message, manifest = listed(world, past=3)
    delete_all_records(world.bootstrap_servers, world.topic, 0)
    abort_record(world, message, manifest)
    write_manifest(world, manifest, commit=True)
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(1) == [b"v"]
    assert world.one(REPAIRED) == 1


@PASTS
def test_what_consumers_see_is_not_published_again_though_its_manifest_was_aborted(
    world: RelayWorld, past: int
) -> None:
    """The double: the manifest's partition lost the transaction, the record's did not."""
    message, manifest = listed(world, past)
    with transaction(world) as kept:
        kept.produce(world.topic, b"v", b"key", headers=record_headers(message, manifest))
        kept.commit_transaction()
    write_manifest(world, manifest, commit=False)
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(past + 1) == [*past_values(past), b"v"]
    assert world.one(LEARNED) == 1
    assert world.one(REPAIRED) == 0


def test_nothing_is_published_beside_an_open_transaction_with_the_next_message(
    world: RelayWorld,
) -> None:
    """The other double: an aborted record that hangs, and that the next commit would show."""
    drain(world.relay())
    world.relay_again().close()
    (half_id,) = world.commit_values(b"v")
    with transaction(world) as hanging:
        hanging.produce(world.topic, b"v", headers=own_headers(message_text(world, half_id)))
        hanging.flush()
        relay = world.relay()
        phases = {relay.run_once().phase for _ in range(4)}
        assert "run" not in {str(phase) for phase in phases}
        hanging.abort_transaction()
    drain(relay)
    assert world.values(1) == [b"v"]


@pytest.mark.deep
def test_nothing_is_published_while_another_transaction_hides_one_with_the_next_message(
    world: RelayWorld,
) -> None:
    """Several shards may hang in one partition: only the oldest is at the last stable offset."""
    drain(world.relay())
    world.relay_again().close()
    (half_id,) = world.commit_values(b"v")
    with transaction(world) as front, transaction(world) as hanging:
        front.produce(world.topic, b"foreign")
        front.flush()
        hanging.produce(world.topic, b"v", headers=own_headers(message_text(world, half_id)))
        hanging.flush()
        relay = world.relay()
        phases = {str(relay.run_once().phase) for _ in range(6)}
        assert "run" not in phases
        hanging.abort_transaction()
        front.abort_transaction()
    drain(relay)
    assert world.values(1) == [b"v"]


def test_a_record_that_retention_has_removed_is_not_published_again(world: RelayWorld) -> None:
    drain(world.relay())
    before = world.one(VISIBLE)
    world.commit_values(b"v")
    drain(world.relay_again())
    delete_all_records(world.bootstrap_servers, world.topic, 0)
    drain(world.relay_again())
    assert world.one(VISIBLE) == before + 1
    assert world.one(REPAIRED) == 0


def write_old(world: RelayWorld, partition: int, hours: int) -> None:
    """Write a record from so long before the batch."""
    at = int((time.time() - 3600 * hours) * 1000)
    write_foreign(world.bootstrap_servers, [(world.topic, partition)], 1, time_ms=at)


def manifests(world: RelayWorld, expected: int) -> list[Message]:
    return list(read_committed(world.bootstrap_servers, world.progress_topic, expected))


def looked(world: RelayWorld, look: object) -> float:
    assert callable(look)
    look()
    return unconfirmed_seconds(world)
