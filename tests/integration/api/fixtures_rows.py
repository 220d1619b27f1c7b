"""Reads the tables, for tests that check what was stored."""

from __future__ import annotations

import asyncio
from typing import Any, LiteralString

from outbox.postgres.sessions.connections import Pool
from tests.fixtures_new_rows import NEW_COMMITS, NEW_HALVES

_STORED: LiteralString = f"""
SELECT (SELECT count(*) FROM outbox.half_message WHERE {NEW_HALVES}),
    (SELECT count(*) FROM outbox.op_message WHERE {NEW_HALVES}),
    (SELECT count(*) FROM outbox.transaction_key WHERE {NEW_HALVES}),
    (SELECT count(*) FROM outbox.commit_log WHERE {NEW_COMMITS})
"""


async def stored(pool: Pool) -> tuple[int, ...]:
    """Count the test's own half messages, op messages, transaction keys and commit log rows."""
    rows = await select(pool, _STORED)
    return tuple(rows[0])


async def select(pool: Pool, statement: LiteralString, *parameters: object) -> list[Any]:
    """Run one statement and return its rows."""
    async with pool.connection() as connection:
        cursor = await connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []


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
