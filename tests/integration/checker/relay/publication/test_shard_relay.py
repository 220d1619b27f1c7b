"""The relay on real PostgreSQL and Kafka: what it publishes, in which order, what it stores."""

from __future__ import annotations

import pytest

from benchmarks.load.committed import append_committed
from outbox.messages.manifest import PUBLISHED, PUBLISHED_BEFORE, decode
from outbox.postgres.sessions.connections import connect
from outbox.relay.protocol.state import HaltReason, Phase
from tests.fixtures_kafka import (
    delete_all_records,
    delete_topic,
    make_topic,
    read_committed,
)
from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain, first_batch

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def test_a_record_carries_key_value_and_headers_in_their_fixed_order(world: RelayWorld) -> None:
    content = {
        "content_type": "text/plain",
        "traceparent": "00-1-2-01",
        "headers": (("b", b"\x01\xff"), ("a", None)),
    }
    message = replace(world.message(b"pay 100", b"member-1", **content), transaction_id="t-1")
    world.commit(message)
    batch = world.next_batch()
    drain(world.relay())
    (record,) = world.records(1)
    assert (record.key, record.value) == (b"member-1", b"pay 100")
    assert [name for name, _ in record.headers] == [
        "outbox_message_id",
        "outbox_batch",
        "outbox_decided_by",
        "outbox_producer_group",
        "outbox_transaction_id",
        "content-type",
        "traceparent",
        "b",
        "a",
    ]
    assert dict(record.headers)["outbox_batch"] == f"{batch}.0".encode()
    assert record.headers[-2:] == content["headers"]


@pytest.mark.parametrize("value", [None, b""], ids=["tombstone", "empty"])
def test_null_and_empty_values_stay_what_they_are(world: RelayWorld, value: bytes | None) -> None:
    template = world.message()
    world.commit(replace(template, value=value, key=None))
    drain(world.relay())
    (record,) = world.records(1)
    assert (record.key, record.value) == (None, value)


def test_d29_records_keep_the_order_of_their_commits_over_batches(world: RelayWorld) -> None:
    values = [b"%d" % n for n in range(250)]
    for first in range(0, 250, 25):
        world.commit_values(*values[first : first + 25])
    drain(world.relay())
    assert world.values(250) == values


def test_an_uncommitted_half_and_a_rolled_back_one_are_never_written(world: RelayWorld) -> None:
    world.commit_values(b"yes")
    world.connection.execute(
        "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
        " producer_group_id, topic_id, value) SELECT half_id + 16, nonce, prepared_at, 1,"
        " producer_group_id, topic_id, 'no' FROM outbox.half_message"
    )
    drain(world.relay())
    assert world.values(1) == [b"yes"]


def test_f17_a_commit_that_took_its_xid_early_and_ends_late_is_not_skipped(
    world: RelayWorld,
) -> None:
    relay = world.relay()
    slow_message = world.message(b"slow")
    with connect(world.database_url, "slow") as slow, slow.transaction(), slow.cursor() as cursor:
        append_committed(cursor, [slow_message], shard=SHARD)
        world.commit_values(b"quick")
        drain(relay)
        assert world.one("SELECT count(*) FROM outbox.publication_log") == 0
    drain(relay)
    assert world.values(2) == [b"slow", b"quick"]


def test_the_first_and_last_record_of_a_batch_measure_the_publish_latency(
    world: RelayWorld,
) -> None:
    world.commit_values(b"old", b"old too")
    world.connection.execute(
        "UPDATE outbox.commit_log SET committed_at = clock_timestamp() - interval '1 hour'"
    )
    world.commit_values(b"new")
    drain(world.relay())
    name, topic = "outbox_publish_latency_seconds", {"topic": world.topic}
    seen = world.metrics.registry.get_sample_value
    assert seen(f"{name}_count", topic) == 2
    assert 3600 <= (seen(f"{name}_sum", topic) or 0) < 3700
    assert seen(f"{name}_bucket", {**topic, "le": "600.0"}) == 1


def test_a_batch_is_cut_at_four_mebibytes_but_takes_one_larger_value(world: RelayWorld) -> None:
    world.commit_values(*[bytes([n]) * 900_000 for n in range(7)])
    relay = world.relay()
    assert first_batch(relay) == 5
    drain(relay)
    assert [len(value or b"") for value in world.values(7)] == [900_000] * 7


def test_messages_that_kafka_already_has_are_listed_and_not_repeated(world: RelayWorld) -> None:
    batch = world.next_batch()
    known, _ = world.commit_values(b"known", b"new")
    world.connection.execute(
        "INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)"
        " SELECT half_id, nonce, %s, 0 FROM outbox.half_message WHERE half_id = %s",
        (SHARD, known),
    )
    drain(world.relay())
    (message,) = read_committed(world.bootstrap_servers, world.progress_topic, 1)
    manifest = decode(bytes(message.value() or b""))
    assert [entry.status for entry in manifest.entries] == [PUBLISHED_BEFORE, PUBLISHED]
    (record,) = world.records(1)
    assert dict(record.headers)["outbox_batch"] == f"{batch}.1".encode()


def test_d31_the_position_survives_a_restart_and_skips_nothing(world: RelayWorld) -> None:
    world.commit_values(b"one")
    first = world.relay()
    drain(first)
    first.close()
    world.commit_values(b"two")
    drain(world.relay())
    assert world.values(2) == [b"one", b"two"]


def test_a_second_relay_waits_for_the_lock_and_follows_at_once(world: RelayWorld) -> None:
    owner, standby = world.relay(), world.relay()
    drain(owner)
    assert standby.run_once().phase is Phase.IDLE
    world.commit_values(b"one")
    owner.close()
    drain(standby)
    assert world.values(1) == [b"one"]


# -- HALT ----------------------------------------------------------------------------------------


def halted(world: RelayWorld) -> HaltReason | None:
    """Start a new relay; return its reason to halt, which must be stored as well."""
    done = drain(world.relay())
    assert done.phase is Phase.HALT
    assert world.one("SELECT halt_reason FROM outbox.progress WHERE name = 'relay:3'") == done.halt
    return done.halt


def start_and_stop(world: RelayWorld) -> None:
    """Publish one record and stop."""
    world.commit_values(b"one")
    relay = world.relay()
    drain(relay)
    relay.close()


def test_f7_a_recreated_progress_topic_halts(world: RelayWorld) -> None:
    start_and_stop(world)
    delete_topic(world.bootstrap_servers, world.progress_topic)
    make_topic(world.bootstrap_servers, partitions=16, name=world.progress_topic)
    assert halted(world) is HaltReason.TOPIC_CHANGED


def test_f19_manifests_deleted_beyond_the_cursor_halt(world: RelayWorld) -> None:
    start_and_stop(world)
    world.connection.execute("UPDATE outbox.progress SET manifest_offset = 0")
    delete_all_records(world.bootstrap_servers, world.progress_topic, SHARD)
    assert halted(world) is HaltReason.PROGRESS_LOST
