"""Takes turns with other processes by session advisory locks, on one connection of its own.

When that connection breaks, PostgreSQL frees every turn at once. Two holders do no harm:
each effect is guarded by a compare-and-set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import psycopg

from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import conninfo

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

TAKE: Final = "SELECT pg_try_advisory_lock(hashtext(%s), %s)"
GIVE: Final = "SELECT pg_advisory_unlock(hashtext(%s), %s)"


class PostgresAdvisoryLocks:
    """The Turns on one PostgreSQL session, opened when first needed and again when it broke."""

    def __init__(self, database_url: str) -> None:
        self._conninfo = conninfo(database_url, "turns")
        self._connection: AsyncConnection | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, kind: str, number: int = 0) -> AsyncIterator[bool]:
        """Hold a turn for the block; see Turns.turn."""
        key = (f"outbox.{kind}", number)
        async with available():
            connection = await self._open()
            held = await _ask(connection, TAKE, key)
        try:
            yield held
        finally:
            if held:
                with suppress(psycopg.Error):
                    await _ask(connection, GIVE, key)

    async def close(self) -> None:
        """Give every turn back by ending the session."""
        if self._connection is not None:
            await self._connection.close()

    async def _open(self) -> AsyncConnection:
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await psycopg.AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=1
                )
            return self._connection


async def _ask(connection: AsyncConnection, statement: str, key: tuple[str, int]) -> bool:
    async with connection.cursor() as cursor:
        await cursor.execute(statement, key)
        row = await cursor.fetchone()
    return row is not None and bool(row[0])
