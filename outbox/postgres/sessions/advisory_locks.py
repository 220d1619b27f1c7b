"""Session advisory locks that processes take in turn, on one dedicated connection.

When that connection breaks, PostgreSQL frees every lock at once. Two holders do no harm: each
effect is guarded by a compare-and-set. The session beats while its process lives. PostgreSQL ends
that of one that is frozen, or whose host is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import psycopg

from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import AsyncConnection, conninfo
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
ANSWER_SECONDS: Final = 5.0
"""Longest wait for an answer of PostgreSQL, which waits for nobody here."""
IDLE_SECONDS: Final = 60
"""After this time without a statement PostgreSQL ends the session: its process is frozen, or its
host is gone."""
BEAT_SECONDS: Final = IDLE_SECONDS / 4


class PostgresAdvisoryLocks:
    """The AdvisoryLocks on one PostgreSQL session; it is opened on first use and after a break."""

    def __init__(self, database_url: str, beat_seconds: float = BEAT_SECONDS) -> None:
        self._conninfo = conninfo(database_url, "turns", idle_seconds=IDLE_SECONDS)
        self._connection: AsyncConnection | None = None
        self._beat_seconds = beat_seconds
        self._beating: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def try_lock(self, kind: str, number: int = 0) -> AsyncIterator[bool]:
        """Hold a lock for the block; see AdvisoryLocks.try_lock."""
        key = {"kind": f"outbox.{kind}", "number": number}
        async with available():
            connection = await self._open()
            held = await _run(connection, "lock", key)
        try:
            yield held
        finally:
            if held:
                with suppress(psycopg.Error):
                    await _run(connection, "unlock", key)

    async def close(self) -> None:
        """Free every lock by ending the session."""
        if self._beating is not None:
            self._beating.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _open(self) -> AsyncConnection:
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=1
                )
                self._connection.answer_seconds = ANSWER_SECONDS
                self._beating = asyncio.create_task(_beat(self._connection, self._beat_seconds))
            return self._connection


async def _beat(connection: AsyncConnection, seconds: float) -> None:
    """Show PostgreSQL that this process lives, until the session ends."""
    with suppress(psycopg.Error):
        while not connection.closed:
            await asyncio.sleep(seconds)
            await connection.execute(SQL["beat"])


async def _run(connection: AsyncConnection, statement: str, key: Mapping[str, object]) -> bool:
    cursor = await connection.execute(SQL[statement], key)
    ((done,),) = await cursor.fetchall()
    return bool(done)
