"""Leaves that are old enough to be retired, and their retirement."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from checker.maintenance.partition_maintenance import PartitionMaintenance
from checker.maintenance.retention import Retirer
from outbox.clock import SystemClock
from outbox.messages.manifest import Position
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.relay.commit_reader import CommitReader
from outbox.postgres.sessions.connections import connect
from tests.integration.checker.fixtures_checks import World
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

RETENTION = 1000
"""Seconds, as all times here."""
OLD = RETENTION + 10
URL = "http://127.0.0.1:9/"
WITHOUT_LEAF = "UPDATE outbox.installation SET base = base + (10 << 20)"
NEXT_LEAF = "UPDATE outbox.installation SET base = base + (1 << 20)"
AGE = """
UPDATE outbox.half_message SET prepared_at = prepared_at - %(by)s * interval '1 second';
UPDATE outbox.op_message SET decided_at = decided_at - %(by)s * interval '1 second';
UPDATE outbox.commit_log SET committed_at = committed_at - %(by)s * interval '1 second';
"""
RELAYED = """
INSERT INTO outbox.progress (name, position)
SELECT name || shard, outbox.watermark()
FROM generate_series(0, 15) AS shard, unnest(%(names)s::text[]) AS name
ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position
"""
SESSIONS_THAT_WAIT = """
SELECT count(DISTINCT pid)::int FROM pg_locks
WHERE NOT granted AND relation IS NOT NULL
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
LIVENESS_SECONDS = 30
LEAF_TABLES = """
SELECT count(*)::int FROM pg_class WHERE relname ~ ('_(message|log|attempt)_' || %(leaf)s || '$')
"""


def retirement_of(world: World) -> PostgresRetirement:
    """Return the retirement of this world's leaves."""
    return PostgresRetirement(world.checker, retention_seconds=RETENTION)


def retirer(world: World) -> Retirer:
    """Return what retires the leaves of this world."""
    return Retirer(retirement_of(world), FreeLocks(), world.metrics)


async def retire(world: World) -> list[int]:
    """Retire what may go; return the leaves, counted from the first that the test wrote to."""
    return [leaf - world.first_leaf for leaf in await retirer(world).retire()]


async def first_leaf_is_gone(world: World) -> bool:
    """Return whether no table of the first leaf is left."""
    return await world.rows(LEAF_TABLES, leaf=str(world.first_leaf)) == [(0,)]


def waiting(world: World, reason: str) -> float:
    """Return how many leaves wait for a reason, by the metric."""
    gauge = world.metrics["leaves_waiting"].labels(reason)
    return float(gauge._value.get())


async def ended(world: World, **fields: Any) -> list[HalfMessage]:
    """Prepare one half to commit and one to roll back, and end both."""
    group = await world.group(URL)
    first = await world.prepare(group, **fields)
    halves = first + await world.prepare(group)
    for half, decision in zip(halves, ("COMMIT", "ROLLBACK"), strict=True):
        await world.end(half, decision)
    return halves


async def grow_old(world: World, *readers: str, by: int = OLD) -> None:
    """Let the leaf in use be the next one, the retention pass, and sweep and readers pass."""
    await world.execute(AGE, by=by)
    await world.execute(NEXT_LEAF)
    await PostgresPartitions(world.checker).create_ahead(1)
    await world.sweep()
    await world.execute(RELAYED, names=list(readers))


def maintenance(world: World) -> PartitionMaintenance:
    """Return the task of the leaves."""
    return PartitionMaintenance(PostgresPartitions(world.checker), world.metrics, SystemClock())


async def sessions_wait(world: World, count: int) -> None:
    """Wait until this many sessions wait for tables."""
    deadline = time.monotonic() + LIVENESS_SECONDS
    while (found := await world.rows(SESSIONS_THAT_WAIT)) != [(count,)]:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)


def relayed(database_url: str, half_id: HalfId) -> bytes | None:
    """Return the value that the relay reads of the newest commit, which is this message."""
    with connect(database_url, "test") as session:
        [(xid,)] = session.execute("SELECT max(xid) FROM outbox.commit_log").fetchall()
    reader = CommitReader(database_url, half_id & 15, batch_max=10)
    (message,) = reader.read(Position(xid - 1, 0)).messages
    reader.close()
    assert message.half_id == half_id
    return message.value
