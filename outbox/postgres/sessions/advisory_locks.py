"""Session advisory locks that processes take in turn, on one dedicated connection.

When that connection breaks, PostgreSQL frees every lock at once. Two holders do no harm: each
effect is guarded by a compare-and-set. Every role of the database may take any advisory lock, so
one that strangers alone have had for ten seconds counts as free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import psycopg

from outbox.clock import Clock, SystemClock
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import conninfo
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
STRANGER_SECONDS: Final = 10.0
"""How long a lock is refused before we ask whose it is; our own rounds are shorter."""


class PostgresAdvisoryLocks:
    """The AdvisoryLocks on one PostgreSQL session; it is opened on first use and after a break."""

    def __init__(self, database_url: str, clock: Clock | None = None) -> None:
        self._conninfo = conninfo(database_url, "turns")
        self._connection: AsyncConnection | None = None
        self._opening = asyncio.Lock()
        self._clock = clock or SystemClock()
        self._refused: dict[tuple[str, int], float] = {}
        """Since when each lock has been refused without a break."""

    @asynccontextmanager
    async def try_lock(self, kind: str, number: int = 0) -> AsyncIterator[bool]:
        """Hold a lock for the block; see AdvisoryLocks.try_lock."""
        key = {"kind": f"outbox.{kind}", "number": number}
        async with available():
            connection = await self._open()
            held = await _run(connection, "lock", key)
            if held:
                self._refused.pop((kind, number), None)
            free = held or await self._is_strangers(connection, kind, number)
        try:
            yield free
        finally:
            if held:
                with suppress(psycopg.Error):
                    await _run(connection, "unlock", key)

    async def close(self) -> None:
        """Free every lock by ending the session."""
        if self._connection is not None:
            await self._connection.close()

    async def _is_strangers(self, connection: AsyncConnection, kind: str, number: int) -> bool:
        """Return whether a lock that is refused, for some time now, is held by strangers alone."""
        now = self._clock.monotonic()
        if now - self._refused.setdefault((kind, number), now) < STRANGER_SECONDS:
            return False
        key = {"kind": f"outbox.{kind}", "number": number}
        if await _run(connection, "only_strangers", key):
            return True
        self._refused[kind, number] = now
        return False

    async def _open(self) -> AsyncConnection:
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await psycopg.AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=1
                )
            return self._connection


async def _run(connection: AsyncConnection, statement: str, key: Mapping[str, object]) -> bool:
    async with connection.cursor() as cursor:
        await cursor.execute(SQL[statement], key)
        row = await cursor.fetchone()
    return row is not None and bool(row[0])
