"""Many rows in the default leaves, as after hours without a checker, and their copy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import psycopg

from checker.maintenance.partition_maintenance import EVERY_SECONDS, PartitionMaintenance
from outbox.messages.message import HalfMessage
from outbox.postgres.maintenance.partitions import PostgresPartitions
from tests.fixtures_waiting import wait_for
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_old_leaves import URL

MANY = 1_200
"""More than may move under the lock of a default leaf."""
PER_XID = 20
WITHOUT_LEAF = "UPDATE outbox.installation SET base = base + (10 << 20)"
NEXT_IDS = "UPDATE outbox.installation SET base = base + %(xids)s"
FILL = """
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, key, value)
SELECT %(first)s + n / 20 * 32768 + n %% 20 * 16, n, now(), n, %(group)s, 1, 'k',
    convert_to(repeat('x', 100), 'UTF8')
FROM generate_series(0, %(rows)s::int8 - 1) AS n;
INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)
SELECT half_id, half_id >> 15, now(), 1, 1 FROM outbox.half_message_default
WHERE half_id >= %(first)s;
INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)
SELECT 0, half_id >> 15, now(), array_agg(half_id), array_agg(content_digest)
FROM outbox.half_message_default WHERE half_id >= %(first)s GROUP BY half_id >> 15
"""
STORED = """
SELECT (SELECT count(*) FROM outbox.half_message WHERE half_id >= %(first)s AND half_id < %(end)s),
    (SELECT count(*) FROM outbox.op_message WHERE half_id >= %(first)s AND half_id < %(end)s),
    (SELECT sum(cardinality(half_ids)) FROM outbox.commit_log
     WHERE xid >= %(first)s::int8 >> 15 AND xid < %(end)s::int8 >> 15)
"""
ALONE = """
SELECT (SELECT count(*) FROM outbox.half_message_default WHERE half_id >= %(first)s),
    (SELECT count(*) FROM outbox.op_message_default WHERE half_id >= %(first)s),
    (SELECT count(*) FROM outbox.commit_log_default WHERE xid >= %(first)s::int8 >> 15)
"""
STEP = "SELECT outbox.move_defaults(%(milliseconds)s)"
LEFT_OVER = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'outbox'::regnamespace
    AND relkind IN ('r', 'p') AND relname ~ '_(next|replaced)'
UNION ALL SELECT tgname::text FROM pg_trigger WHERE tgname = 'mirror'
UNION ALL SELECT parent FROM outbox.leaf_move
"""
T = TypeVar("T")
LIVENESS_SECONDS = 30
SESSIONS_THAT_WAIT = """
SELECT count(DISTINCT pid)::int FROM pg_locks
WHERE NOT granted AND relation IS NOT NULL
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
TABLES = ("half_message", "op_message", "commit_log", "publication_log", "check_attempt")
TOUCHED = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)
    + n_tup_ins + n_tup_upd + n_tup_del), 0)
FROM pg_stat_xact_all_tables WHERE schemaname = 'outbox' AND relname ~ %s
"""
KEPT_IN_ALL = """
SELECT (SELECT count(*) FROM outbox.half_message_default WHERE half_id < %(first)s)
    + (SELECT count(*) FROM outbox.op_message_default WHERE half_id < %(first)s)
    + (SELECT count(*) FROM outbox.publication_log_default)
    + (SELECT count(*) FROM outbox.check_attempt_default)
"""


class Filled(NamedTuple):
    """The halves that were stored without a leaf: all are committed."""

    first: int
    rows: int

    @property
    def leaf(self) -> int:
        """The leaf that they need."""
        return self.first >> 35

    @property
    def end(self) -> int:
        """The first half id behind them."""
        return self.first + (self.rows // PER_XID << 15)


async def fill(world: World, rows: int = MANY) -> Filled:
    """Store so many committed halves that have no leaf."""
    group = await world.group(URL, "fills")
    await world.execute(WITHOUT_LEAF)
    ((first,),) = await world.rows("SELECT outbox.watermark() << 15")
    await world.execute(FILL, first=first, rows=rows, group=group.id)
    await world.execute(NEXT_IDS, xids=rows // PER_XID)
    assert await world.rows(ALONE, first=first) == [(rows, rows, rows // PER_XID)]
    return Filled(first, rows)


async def has_all(world: World, filled: Filled) -> bool:
    """Return whether all halves are found once, in their leaf, and nothing else is left."""
    stored = await world.rows(STORED, first=filled.first, end=filled.end)
    assert stored == [(filled.rows, filled.rows, filled.rows)]
    assert await world.rows(LEFT_OVER) == []
    return await world.rows(ALONE, first=filled.first) == [(0, 0, 0)]


def maintenance(world: World) -> PartitionMaintenance:
    """Return the task of the leaves."""
    return PartitionMaintenance(PostgresPartitions(world.checker), world.metrics)


async def finish(world: World) -> None:
    """Run the task until no leaf is missing."""
    task = maintenance(world)
    for _ in range(100):
        if await task.step() == EVERY_SECONDS:
            return
    raise AssertionError(await next_step(world))


async def next_step(world: World) -> str:
    """Return what comes next."""
    return str((await world.rows("SELECT outbox.leaf_move_step()"))[0][0])


async def steps_until(world: World, wanted: str) -> None:
    """Do step after step until the wanted one is next; each copies as few rows as it can."""
    for _ in range(10_000):
        if (step := await next_step(world)) == wanted:
            return
        assert await world.rows(STEP, milliseconds=0) == [(step,)]
    raise AssertionError(await next_step(world))


def do(session: psycopg.Connection[Any]) -> str:
    """Do the next step in a session's transaction, all of it, and return which one it was."""
    row = session.execute(STEP, {"milliseconds": 60_000}).fetchone()
    assert row is not None
    return str(row[0])


def touched(database_url: str, *statements: str) -> int:
    """Return how many rows of the partitioned tables statements read and write; undo these.

    They give up behind a vacuum, and are tried again.
    """
    return wait_for(lambda: touched_at_once(database_url, statements))[0]


def touched_at_once(database_url: str, statements: Sequence[str]) -> list[int]:
    """Return how many rows statements read and write; nothing if they gave up."""
    with suppress(psycopg.errors.LockNotAvailable), psycopg.connect(database_url) as session:
        for statement in statements:
            session.execute(statement.encode())
        row = session.execute(TOUCHED, [f"^({'|'.join(TABLES)})"]).fetchone()
        session.rollback()
        assert row is not None
        return [int(row[0])]
    return []


async def at_once(world: World, name: str) -> list[HalfMessage]:
    """Return a committed and an undecided half; neither the prepare nor the end waits."""
    group = await world.group(URL, name)
    halves = await soon(world.prepare(group, 2))
    await soon(world.end(halves[0], "COMMIT"))
    return halves


async def sessions_wait(world: World, count: int) -> None:
    """Wait until so many sessions wait for tables."""
    deadline = time.monotonic() + LIVENESS_SECONDS
    while (found := await world.rows(SESSIONS_THAT_WAIT)) != [(count,)]:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)


async def soon(work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns, before a generous deadline."""
    task = asyncio.create_task(work)
    done, _ = await asyncio.wait([task], timeout=LIVENESS_SECONDS)
    assert done, "it waits"
    return task.result()
