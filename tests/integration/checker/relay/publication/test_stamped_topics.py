"""Topics whose records have the brokers' time, which says nothing about PostgreSQL's."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from outbox.messages.message_id import SHARDS
from tests.fixtures_kafka import make_topic, read_committed, set_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.checker.relay.settlement.fixtures_unseen_batches import (
    REPAIRED,
    abort_record,
    listed,
    record_headers,
    transaction,
    write_hung_manifest,
    write_manifest,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

AHEAD_SECONDS: Final = 600
"""How far PostgreSQL's clock is ahead of the brokers'."""
Write = Callable[..., None]
FAR_AHEAD_SECONDS: Final = 7200
HOUR_MS: Final = 3_600_000
AHEAD_TAKEN: Final = {"message.timestamp.after.max.ms": str(10 * FAR_AHEAD_SECONDS * 1000)}
STAMPED: Final = {"message.timestamp.type": "LogAppendTime"}


@pytest.mark.parametrize("write", [partial(write_manifest, commit=True), write_hung_manifest])
def test_a_visible_record_is_not_published_again_though_the_brokers_clock_is_late(
    world: RelayWorld, capsys: pytest.CaptureFixture[str], write: Write
) -> None:
    world.topic = make_topic(world.bootstrap_servers, partitions=1, config=STAMPED)
    message, manifest = listed(world, past=0)
    with transaction(world) as kept:
        kept.produce(world.topic, b"v", b"key", headers=record_headers(message, manifest))
        kept.commit_transaction()
    write(world, manifest, time_ms=int((time.time() + AHEAD_SECONDS) * 1000))
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(1) == [b"v"]
    assert world.one(REPAIRED) == 0
    assert "publication_unproven" in "".join(capsys.readouterr())


def test_a_visible_record_is_not_published_again_though_the_manifests_have_a_clock_that_is_ahead(
    world: RelayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """The brokers' default may stamp the manifests alone: the record seems older than its batch."""
    servers = world.bootstrap_servers
    world.progress_topic = make_topic(servers, partitions=SHARDS, config=STAMPED)
    message, manifest = listed(world, past=0)
    behind = int((time.time() - AHEAD_SECONDS) * 1000)
    with transaction(world) as kept:
        headers = record_headers(message, manifest)
        kept.produce(world.topic, b"v", b"key", headers=headers, timestamp=behind)
        kept.commit_transaction()
    write_manifest(world, manifest, commit=True)
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(1) == [b"v"]
    assert world.one(REPAIRED) == 0
    assert "publication_unproven" in "".join(capsys.readouterr())


def test_a_relay_that_starts_while_postgresqls_clock_is_behind_goes_on_with_the_manifests_time(
    world: RelayWorld,
) -> None:
    """A broker deletes at once what is older than a topic keeps."""
    servers = world.bootstrap_servers
    world.progress_topic = make_topic(servers, partitions=SHARDS, config=AHEAD_TAKEN)
    world.topic = make_topic(servers, partitions=1, config=AHEAD_TAKEN)
    message, manifest = listed(world, past=0)
    taken_ms = int((time.time() + FAR_AHEAD_SECONDS) * 1000)
    with transaction(world) as kept:
        headers = record_headers(message, manifest)
        kept.produce(world.topic, b"v", b"key", headers=headers, timestamp=taken_ms)
        kept.commit_transaction()
    write_manifest(world, manifest, commit=True, time_ms=taken_ms)
    world.commit_values(b"next")
    drain(world.relay())
    records = read_committed(servers, world.topic, 2)
    assert [record.value() for record in records] == [b"v", b"next"]
    assert records[1].timestamp()[1] == taken_ms


@pytest.mark.parametrize(
    "delivery",
    [
        "exactly_once",
        "at_least_once",
    ],
)
def test_a_relay_does_not_insist_on_a_time_from_before_the_brokers_clock_was_set_back(
    world: RelayWorld, delivery: str
) -> None:
    """A wrong time server sets both clocks: no record may wait until the wrong time comes."""
    servers = world.bootstrap_servers
    world.delivery = delivery
    world.progress_topic = make_topic(servers, partitions=SHARDS, config=AHEAD_TAKEN)
    held = world.one("SELECT count(*) FROM outbox.held_record")
    _, manifest = listed(world, past=0)
    taken_ms = int((time.time() + FAR_AHEAD_SECONDS) * 1000)
    write_manifest(world, manifest, commit=True, time_ms=taken_ms)
    set_topic(servers, world.progress_topic, "message.timestamp.after.max.ms", HOUR_MS)
    world.commit_values(b"next")
    drain(world.relay(), rounds=60)
    assert world.values(1) == [b"next"]
    assert world.one("SELECT count(*) FROM outbox.held_record") == held


def test_an_aborted_record_with_the_brokers_time_is_published_again(world: RelayWorld) -> None:
    world.topic = make_topic(world.bootstrap_servers, partitions=1, config=STAMPED)
    message, manifest = listed(world, past=0)
    abort_record(world, message, manifest)
    write_manifest(world, manifest, commit=True)
    drain(world.relay())
    drain(world.relay_again())
    assert world.values(1) == [b"v"]
    assert world.one(REPAIRED) == 1
