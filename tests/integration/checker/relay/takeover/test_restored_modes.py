"""A backup that is older than a change of the delivery mode: the relay learns what Kafka has.

What at_least_once has published since the backup is repeated, as after a crash.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli.invocation.exit_codes import CommandFailed
from cli.stores.shard_resolution import ShardResolution
from outbox.messages.message_id import SHARDS, HalfId
from outbox.operators.message_view import OperatorAction
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import NO_MANIFESTS, HaltReason, Phase
from outbox.settings.environment import load_settings
from tests.fixtures_kafka import delete_all_records, make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.settlement.fixtures_forgotten_tail import (
    forget_tail,
    progress_of,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

LANE, LISTED = "at_least_once", "exactly_once"
LEARNED = """
SELECT array_agg(half_id ORDER BY half_id) FROM outbox.already_published WHERE shard = 3
"""
TOPIC_ID = "SELECT topic_id FROM outbox.progress WHERE name = 'relay:3'"


def published(world: RelayWorld, delivery: str, *values: bytes) -> list[HalfId]:
    """Publish values in a delivery mode, and stop the relay."""
    world.delivery = delivery
    ids = [half_id for value in values for half_id in world.commit_values(value)]
    assert drain(world.relay_again()).phase is Phase.RUN
    world.relay_again().close()
    return ids


def resolve(world: RelayWorld, way: HaltResolution) -> None:
    """Decide on behalf of the operator."""
    action = OperatorAction(operator="tester", reason="a restore", key_id=None)
    world.relay_again().close()
    settings = load_settings(world.environment)
    ShardResolution(settings, SHARD, world.progress_topic).resolve(way, action)


def same_server(_: RelayWorld) -> None:
    """Nothing else has changed."""


def another_server(world: RelayWorld) -> None:
    """The relay halts, and an operator accepts the server."""
    world.connection.execute("UPDATE outbox.progress SET pg_system_id = 'another'")
    assert drain(world.relay_again()).halt is HaltReason.DATABASE_CHANGED
    resolve(world, HaltResolution.ACCEPT)


@pytest.mark.parametrize(("since", "restore"), [((), another_server), ((b"since",), same_server)])
def test_what_exactly_once_published_after_a_backup_of_the_lane_is_learned_and_not_repeated(
    world: RelayWorld, since: tuple[bytes, ...], restore: Callable[[RelayWorld], None]
) -> None:
    published(world, LANE, b"before")
    backup = progress_of(world)
    published(world, LANE, *since)
    published(world, LISTED, b"kept")
    forgotten = published(world, LISTED, b"forgotten")
    forget_tail(world, backup, *forgotten)
    restore(world)
    published(world, LISTED, b"new")
    expected = [b"before", *since, b"kept", b"forgotten", *since, b"new"]
    assert world.values(len(expected)) == expected
    assert world.one(LEARNED)[-1] == forgotten[0]


@pytest.mark.parametrize("restore", [same_server, another_server])
def test_a_backup_of_exactly_once_learns_what_it_published_before_and_after_the_lane(
    world: RelayWorld, restore: Callable[[RelayWorld], None]
) -> None:
    published(world, LISTED, b"before")
    backup = progress_of(world)
    first = published(world, LISTED, b"first")
    published(world, LANE, b"lane")
    second = published(world, LISTED, b"second")
    forget_tail(world, backup, *first, *second)
    restore(world)
    published(world, LISTED, b"new")
    expected = [b"before", b"first", b"lane", b"second", b"lane", b"new"]
    assert world.values(len(expected)) == expected
    assert world.one(LEARNED) == [*first, *second]


def test_a_backup_of_the_lane_that_goes_on_in_the_lane_learns_what_exactly_once_published(
    world: RelayWorld,
) -> None:
    published(world, LANE, b"before")
    backup = progress_of(world)
    forgotten = published(world, LISTED, b"forgotten")
    kept = published(world, LISTED, b"kept")
    published(world, LANE, b"lane")
    forget_tail(world, backup, *forgotten)
    published(world, LANE, b"new")
    expected = [b"before", b"forgotten", b"kept", b"lane", b"lane", b"new"]
    assert world.values(len(expected)) == expected
    assert world.one(LEARNED) == [*forgotten, *kept]
    assert world.one("SELECT manifest_offset FROM outbox.progress WHERE name = 'relay:3'") == (
        NO_MANIFESTS
    )


@pytest.mark.parametrize("delivery", [LISTED, LANE])
def test_a_backup_of_the_lane_whose_manifests_have_expired_halts_and_a_scan_repeats_nothing(
    world: RelayWorld, delivery: str
) -> None:
    """The log begins with a chain that follows another period of the lane."""
    published(world, LANE, b"before")
    backup = progress_of(world)
    published(world, LISTED, b"kept")
    published(world, LANE)
    delete_all_records(world.bootstrap_servers, world.progress_topic, SHARD)
    published(world, LISTED, b"second")
    forget_tail(world, backup)
    world.delivery = delivery
    assert drain(world.relay_again()).halt is HaltReason.PROGRESS_LOST
    resolve(world, HaltResolution.SCAN)
    published(world, delivery, b"new")
    assert world.values(4) == [b"before", b"kept", b"second", b"new"]


def test_a_backup_of_the_lane_whose_next_manifest_is_missing_halts_and_a_scan_repeats_nothing(
    world: RelayWorld,
) -> None:
    published(world, LANE, b"before")
    backup = progress_of(world)
    published(world, LISTED, b"missing")
    published(world, LISTED, b"kept")
    forget_tail(world, backup)
    world.connection.execute("UPDATE outbox.progress SET visible_offset = visible_offset + 2")
    assert drain(world.relay_again()).halt is HaltReason.CHAIN_BROKEN
    resolve(world, HaltResolution.SCAN)
    published(world, LISTED, b"new")
    assert world.values(4) == [b"before", b"missing", b"kept", b"new"]


def test_a_backup_of_the_lane_and_of_another_topic_repeats_nothing_once_that_is_accepted(
    world: RelayWorld,
) -> None:
    published(world, LANE, b"before")
    backup, topic_id = progress_of(world), world.one(TOPIC_ID)
    world.progress_topic = make_topic(world.bootstrap_servers, partitions=SHARDS)
    assert drain(world.relay_again()).halt is HaltReason.TOPIC_CHANGED
    resolve(world, HaltResolution.ACCEPT)
    published(world, LISTED, b"kept")
    forget_tail(world, backup)
    world.connection.execute("UPDATE outbox.progress SET topic_id = %s", (topic_id,))
    assert drain(world.relay_again()).halt is HaltReason.TOPIC_CHANGED
    resolve(world, HaltResolution.ACCEPT)
    published(world, LISTED, b"new")
    assert world.values(3) == [b"before", b"kept", b"new"]


def test_a_renewed_copy_of_the_lane_is_not_accepted_beside_the_manifests_of_its_original(
    world: RelayWorld,
) -> None:
    published(world, LISTED, b"one")
    published(world, LANE, b"two")
    world.connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
    world.connection.execute("UPDATE outbox.progress SET halt_reason = 'cluster_changed'")
    with pytest.raises(CommandFailed, match="belongs to the installation"):
        resolve(world, HaltResolution.ACCEPT)
