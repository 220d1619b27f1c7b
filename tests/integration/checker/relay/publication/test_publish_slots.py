"""The turn of a shard to publish, on real PostgreSQL and Kafka."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from benchmarks.load.committed import commit_directly
from checker import relay_wiring
from checker.relay.publish_slots import PublishSlots
from checker.relay.shard_relay import ShardRelay
from outbox.postgres.sessions.connections import connect
from tests.integration.checker.relay.fixtures_relay import (
    SHARD,
    RelayWorld,
    drain,
    first_batch,
    until,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

OTHER = SHARD + 1
LOCK = "LOCK TABLE outbox.progress IN SHARE MODE"
"""Lets others read the progress but not store any, and takes no xid: the watermark moves on."""
SAVES_THAT_WAIT = (
    "SELECT count(*) FROM pg_locks WHERE relation = 'outbox.progress'::regclass AND NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def publish_and_save(relay: ShardRelay) -> None:
    """Publish a batch and continue until its progress is stored, which happens once a second."""

    def is_saved() -> bool:
        drain(relay)
        return not relay._state.dirty

    first_batch(relay)
    until(is_saved)


def test_a_shard_that_cannot_save_its_progress_does_not_keep_another_from_publishing(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody loses patience: the other shard publishes only when the turn is handed on."""
    patient = partial(PublishSlots, patience_seconds=threading.TIMEOUT_MAX)
    monkeypatch.setattr(relay_wiring, "PublishSlots", patient)
    world.connection.execute("UPDATE outbox.installation SET shards = 16")
    relays = world.builder()
    saving, waiting = relays.open(SHARD), relays.open(OTHER)
    world.opened += [saving, waiting]
    drain(saving)
    drain(waiting)
    with ThreadPoolExecutor(2) as pool:
        with connect(world.database_url, "test") as operator, operator.transaction():
            operator.execute(LOCK)
            world.commit_values(b"one")
            saved = pool.submit(publish_and_save, saving)
            until(lambda: world.one(SAVES_THAT_WAIT) == 1)
            commit_directly(world.connection, [world.message(b"two")], shard=OTHER)
            pool.submit(drain, waiting)
            assert world.values(2) == [b"one", b"two"]
            assert not saved.done()
        saved.result()
    assert (
        world.one("SELECT cardinality(half_ids) FROM outbox.publication_log WHERE shard = 3") == 1
    )
