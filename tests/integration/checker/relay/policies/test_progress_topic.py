"""What an operator's retention, growth and mirrors do to the topic of manifests."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from outbox.relay.protocol.state import Phase
from tests.fixtures_kafka import delete_all_records
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def publish_and_stop(world: RelayWorld) -> None:
    world.commit_values(b"one")
    relay = world.relay()
    drain(relay)
    relay.close()


def test_a_shard_whose_manifests_all_expired_while_it_was_stopped_goes_on(
    world: RelayWorld,
) -> None:
    publish_and_stop(world)
    delete_all_records(world.bootstrap_servers, world.progress_topic, SHARD)
    world.commit_values(b"two")
    assert drain(world.relay()).phase is Phase.RUN
    assert world.values(2) == [b"one", b"two"]


def test_a_progress_topic_with_more_partitions_than_shards_is_used(world: RelayWorld) -> None:
    publish_and_stop(world)
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers, "log_level": 0})
    grown = admin.create_partitions([NewPartitions(world.progress_topic, 20)])
    grown[world.progress_topic].result(timeout=60)
    world.commit_values(b"two")
    assert drain(world.relay()).phase is Phase.RUN
    assert world.values(2) == [b"one", b"two"]
