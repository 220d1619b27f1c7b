"""Reads and writes the tables, for tests that check what was stored."""

from __future__ import annotations

import asyncio
from typing import Any, LiteralString

from outbox.postgres.sessions.connections import Pool

_STORED: LiteralString = """
SELECT (SELECT count(*) FROM outbox.half_message),
    (SELECT count(*) FROM outbox.op_message),
    (SELECT count(*) FROM outbox.transaction_key),
    (SELECT count(*) FROM outbox.commit_log)
"""
CHECKED: LiteralString = (
    "INSERT INTO outbox.check_attempt (half_id, look_id, round, attempt, asked_at, outcome,"
    " http_status, latency_ms, counted, applied)"
    " SELECT half_id, %s, 1, %s, clock_timestamp(), %s, 200, 3, true, true FROM outbox.half_message"
)
"""Writes a check of each message: look, attempt, outcome."""
PARK = """
INSERT INTO outbox.parked_message
    (half_id, producer_group_id, parked_at, parked_reason, check_count)
SELECT half_id, producer_group_id, clock_timestamp(), 'check_max', 15 FROM outbox.half_message
"""
"""Parks every message of the test, after 15 checks."""
_PUBLISH: tuple[LiteralString, ...] = (
    "INSERT INTO outbox.publication_log SELECT shard, xid, 1, 1, xid, 0, clock_timestamp(),"
    " half_ids, ARRAY[2], ARRAY[41::bigint] FROM outbox.commit_log",
    "INSERT INTO outbox.progress (name, position, position_n)"
    " SELECT 'relay:' || shard, xid, 1 FROM outbox.commit_log"
    " ON CONFLICT (name) DO UPDATE SET"
    " position = EXCLUDED.position, position_n = EXCLUDED.position_n",
)
HALT: LiteralString = """
INSERT INTO outbox.progress (name, position, position_n, halt_reason)
VALUES ('relay:3', 0, 0, 'progress_lost')
ON CONFLICT (name) DO UPDATE SET halt_reason = excluded.halt_reason
"""
"""Halts shard 3."""
UNKNOWN = "00000000-0001-8001-8000-000000000000"
"""An id that was never issued."""


async def stored(pool: Pool) -> tuple[int, ...]:
    """Count the test's own half messages, op messages, transaction keys and commit log rows."""
    rows = await select(pool, _STORED)
    return tuple(rows[0])


async def select(pool: Pool, statement: LiteralString, *parameters: object) -> list[Any]:
    """Run one statement and return its rows."""
    async with pool.connection() as connection:
        cursor = await connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []


async def publish(pool: Pool) -> None:
    """Store that Kafka has the test's one commit, at partition 2 and offset 41."""
    for statement in _PUBLISH:
        await select(pool, statement)


WAITING: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database()
"""
"""Counts the sessions that wait for a lock of another one."""


async def until_a_session_waits(pool: Pool) -> None:
    """Return once a session of this database waits for a lock."""
    async with asyncio.timeout(60):
        while (await select(pool, WAITING))[0][0] == 0:
            pass
