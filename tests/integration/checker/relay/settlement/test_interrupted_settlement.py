"""A settlement that a death interrupts, or that meets a PostgreSQL that lost its newest rows."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Final
from uuid import UUID

import pytest

from cli.stores.shard_resolution import ShardResolution
from outbox.messages.manifest import PUBLISHED, Entry, Position, crc_of, encode
from outbox.messages.message import End, Resolution
from outbox.messages.message_id import SHARDS, HalfId, Nonce
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import make_pool
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import Phase
from outbox.settings.environment import load_settings
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.settlement.fixtures_lost_record import (
    NEWEST,
    PAST,
    lose_the_record,
)
from tests.integration.checker.relay.settlement.fixtures_unseen_batches import (
    REPAIRED,
    listed,
    message_text,
    past_values,
    record_headers,
    transaction,
    write_manifest,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

OP: Final = "SELECT decision FROM outbox.op_message WHERE half_id = %s"
OPEN_REPAIRS: Final = "SELECT count(*) FROM outbox.open_held WHERE repair IS NOT NULL"
HALT: Final = "SELECT halt_reason FROM outbox.progress WHERE name = 'relay:3'"


@pytest.mark.parametrize("batch", ["relay.after_settle", "relay.after_repair_order"])
def test_a_relay_that_dies_while_it_orders_a_repair_publishes_once(
    world: RelayWorld, batch: str
) -> None:
    lose_the_record(world)
    with world.process(f"{batch}=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]
    assert world.one(REPAIRED) == 1


def test_a_relay_that_dies_after_it_ended_an_open_transaction_publishes_once(
    world: RelayWorld,
) -> None:
    message, manifest = listed(world, PAST)
    with transaction(world) as hanging:
        hanging.produce(world.topic, b"v", b"key", headers=record_headers(message, manifest))
        hanging.flush()
        with world.process("relay.after_heal=kill#1") as process:
            assert process.wait(timeout=60) == -signal.SIGKILL
        hanging.abort_transaction()
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]


async def test_a_batch_that_kafka_and_postgres_both_lost_is_published_once_when_decided_again(
    world: RelayWorld,
) -> None:
    """Its manifest is committed, its record is aborted, and a restore took its decision away."""
    lose_the_record(world)
    half = HalfId(world.one(NEWEST))
    forget(world, half)
    drain(world.relay())
    await decide_again(world, half)
    drain(world.relay_again())
    assert world.one(OP, half) == 1
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]


async def test_a_visible_batch_without_manifest_that_postgres_lost_is_not_published_again(
    world: RelayWorld,
) -> None:
    message, manifest = listed(world, PAST)
    half = HalfId(world.one(NEWEST))
    with transaction(world) as kept:
        kept.produce(world.topic, b"v", b"key", headers=record_headers(message, manifest))
        kept.commit_transaction()
    write_manifest(world, manifest, commit=False)
    forget(world, half)
    drain(world.relay())
    await decide_again(world, half)
    drain(world.relay_again())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]


async def test_a_lost_tail_behind_a_lost_manifest_halts_the_shard_and_a_scan_doubles_nothing(
    world: RelayWorld,
) -> None:
    """The next manifest continues one that nobody can read any more."""
    message, manifest = listed(world, PAST)
    first = HalfId(world.one(NEWEST))
    (second,) = world.commit_values(b"w")
    next_message = message_text(world, second)
    following = replace(
        manifest,
        batch_no=manifest.batch_no + 1,
        prev_crc=crc_of(encode(manifest)),
        after=manifest.to,
        to=Position(second >> 15, 1),
        entries=(Entry(UUID(next_message).bytes, PUBLISHED),),
    )
    for value, text, batch in ((b"v", message, manifest), (b"w", next_message, following)):
        with transaction(world) as kept:
            kept.produce(world.topic, value, b"key", headers=record_headers(text, batch))
            kept.commit_transaction()
        write_manifest(world, batch, commit=batch is following)
    forget(world, first)
    forget(world, second)
    assert drain(world.relay()).phase is Phase.HALT
    assert world.one(HALT) == "chain_broken"
    world.opened[-1].close()
    resolve(world, HaltResolution.SCAN, "the manifest was lost")
    drain(world.relay())
    for half in (first, second):
        await decide_again(world, half)
    drain(world.relay_again())
    assert world.values(PAST + 2) == [*past_values(PAST), b"v", b"w"]


def test_a_repair_that_postgres_never_noted_is_not_repeated_when_its_manifest_is_gone(
    world: RelayWorld,
) -> None:
    lose_the_record(world)
    with world.process("relay.after_commit=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]
    world.progress_topic = make_topic(world.bootstrap_servers, partitions=SHARDS)
    assert drain(world.relay()).phase is Phase.HALT
    assert world.one(HALT) == "topic_changed"
    world.opened[-1].close()
    resolve(world, HaltResolution.ACCEPT, "the topic was lost")
    world.commit_values(b"w")
    drain(world.relay())
    assert world.values(PAST + 2) == [*past_values(PAST), b"v", b"w"]
    assert world.one(OPEN_REPAIRS) == 0


def test_a_repair_that_kafka_does_not_have_is_published_after_the_loss_of_its_manifests(
    world: RelayWorld,
) -> None:
    lose_the_record(world)
    with world.process("relay.after_repair_order=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    world.progress_topic = make_topic(world.bootstrap_servers, partitions=SHARDS)
    assert drain(world.relay()).phase is Phase.HALT
    world.opened[-1].close()
    resolve(world, HaltResolution.ACCEPT, "the topic was lost")
    drain(world.relay())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]
    assert world.one(OPEN_REPAIRS) == 0


def test_a_manifest_of_a_lost_record_does_not_end_its_repair(world: RelayWorld) -> None:
    lose_the_record(world)
    with world.process("relay.after_repair_order=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    world.connection.execute(
        "UPDATE outbox.progress SET halt_reason = 'replay_stuck' WHERE name = 'relay:3'"
    )
    resolve(world, HaltResolution.SCAN, "the replay was stuck")
    drain(world.relay())
    assert world.values(PAST + 1) == [*past_values(PAST), b"v"]
    assert world.one(OPEN_REPAIRS) == 0


def resolve(world: RelayWorld, way: HaltResolution, reason: str) -> None:
    """Decide on behalf of the operator."""
    action = OperatorAction(operator="test", reason=reason, key_id=None)
    settings = load_settings(world.environment)
    ShardResolution(settings, SHARD, world.progress_topic).resolve(way, action)


def forget(world: RelayWorld, half: HalfId) -> None:
    """Take the decision of a message from PostgreSQL, as a restore does."""
    world.connection.execute("DELETE FROM outbox.op_message WHERE half_id = %s", (half,))
    world.connection.execute(
        "DELETE FROM outbox.commit_log WHERE half_ids && %s::int8[]", ([half],)
    )


async def decide_again(world: RelayWorld, half: HalfId) -> None:
    """Send the COMMIT that the producer's own transaction still knows."""
    nonce = Nonce(world.one("SELECT nonce FROM outbox.half_message WHERE half_id = %s", half))
    end = End(half_id=half, nonce=nonce, decision=Resolution.COMMIT)
    async with make_pool(world.database_url, "test", pool_max=1, pool_min=1) as pool:
        await PostgresHalfStore(pool).end([end])
