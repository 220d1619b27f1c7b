"""A held record does not keep its leaf, and is published after the leaf is gone."""

from __future__ import annotations

import pytest

from outbox.messages.message import State
from outbox.messages.message_id import HalfId
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    commit,
    drain_until_free,
    heads,
    large,
    lower,
    raise_again,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

RETENTION = 1000
PAST = """
UPDATE outbox.half_message SET prepared_at = prepared_at - interval '1 day';
UPDATE outbox.op_message SET decided_at = decided_at - interval '1 day';
UPDATE outbox.commit_log SET committed_at = committed_at - interval '1 day';
UPDATE outbox.publication_log SET published_at = published_at - interval '1 day';
"""
NEXT_LEAF = """
UPDATE outbox.installation SET base = base + (1 << 20);
SELECT outbox.create_leaves(1)
"""
PLACES = "SELECT count(*) FROM outbox.publication_log_default WHERE shard = 3"
LEAF = "SELECT %s::bigint >> 35 IN (SELECT leaf FROM outbox.retired_leaf)"


def retire(world: RelayWorld) -> None:
    """Let the leaf in use be the next one and the retention of the former one pass; retire it."""
    world.connection.execute(PAST.encode())
    world.connection.execute(NEXT_LEAF.encode())
    world.ask(_retire)


async def _retire(pool: Pool) -> None:
    while await PostgresSweep(pool).sweep(1000):
        pass
    retirement = PostgresRetirement(pool, retention_seconds=RETENTION)
    for leaf in await retirement.leaves():
        if await retirement.waits_for(leaf) is None:
            assert await retirement.remove(leaf)
    await retirement.forget_finished()


def state(world: RelayWorld, half_id: HalfId) -> State | None:
    """Return the state of a message that a look-up shows; None if it is unknown."""
    status = world.status(half_id)
    return status.state if status else None


def test_a_held_record_does_not_keep_its_leaf_and_is_published_after_it_is_gone(
    world: RelayWorld,
) -> None:
    lower(world)
    (published,) = commit(world, b"b", b"1")
    refused, waiting = commit(world, b"a", large(2), b"3")
    drain(world.relay())
    world.relay_again().close()
    retire(world)
    assert world.one(LEAF, refused), "the leaf waits for the held record"
    states = [state(world, each) for each in (published, refused, waiting)]
    assert states == [None, State.COMMITTED, State.COMMITTED]

    raise_again(world)
    drain_until_free(world)
    assert heads(world, 3) == [b"1", b"2", b"3"]
    assert world.one(PLACES) > 0
    retire(world)
    states = [state(world, each) for each in (refused, waiting)]
    assert states == [State.PUBLISHED] * 2, "the retention begins with the publication"
    assert world.one(PLACES) == 0, "places that are old go, though no leaf has them"

    world.connection.execute(
        "UPDATE outbox.held_record SET released_at = released_at - interval '1 day' WHERE shard = 3"
    )
    retire(world)
    assert [state(world, each) for each in (refused, waiting)] == [None, None]
    kept = "SELECT count(*) FROM outbox.half_message_default WHERE half_id = ANY (%s)"
    assert world.one(kept, [refused, waiting]) == 0
