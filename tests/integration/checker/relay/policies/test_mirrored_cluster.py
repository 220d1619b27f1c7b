"""A failover to a cluster that a mirror has filled: its offsets are others, its manifests ours."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from outbox.messages.message_id import SHARDS
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import HaltReason, Phase
from tests.fixtures_kafka import make_topic, read_committed
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]


def publish(world: RelayWorld, *values: bytes) -> None:
    """Publish one batch for each value, and stop."""
    for value in values:
        world.commit_values(value)
        drain(world.relay_again())
    world.relay_again().close()


def mirror_manifests(world: RelayWorld, batches: int) -> None:
    """Copy the manifests of the first batches as a mirror does: without markers and aborted ones.

    Data topics have the same records in both clusters, so the same topic stands for both.
    """
    servers = world.bootstrap_servers
    found = read_committed(servers, world.progress_topic, 1)
    world.progress_topic = make_topic(servers, partitions=SHARDS)
    copying = Producer({"bootstrap.servers": servers, "log_level": 0})
    for message in found[:batches]:
        copying.produce(world.progress_topic, message.value(), partition=SHARD)
    assert copying.flush(60) == 0


@pytest.mark.parametrize("mirrored", [3, 2], ids=["all manifests", "all but the last"])
def test_a_shard_goes_on_after_a_failover_once_that_is_accepted(
    world: RelayWorld, mirrored: int
) -> None:
    publish(world, b"one", b"two", b"three")
    mirror_manifests(world, mirrored)
    assert drain(world.relay_again()).halt is HaltReason.TOPIC_CHANGED
    world.resolve(HaltResolution.ACCEPT)
    world.commit_values(b"new")
    assert drain(world.relay_again()).phase is Phase.RUN
    assert world.values(4) == [b"one", b"two", b"three", b"new"]


def test_a_log_with_another_manifest_of_the_last_batch_halts_again(world: RelayWorld) -> None:
    publish(world, b"one")
    mirror_manifests(world, 1)
    assert drain(world.relay_again()).halt is HaltReason.TOPIC_CHANGED
    world.connection.execute("UPDATE outbox.progress SET crc = 7")
    world.resolve(HaltResolution.ACCEPT)
    assert drain(world.relay_again()).halt is HaltReason.CHAIN_BROKEN
