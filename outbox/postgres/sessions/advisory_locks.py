"""Session advisory locks that processes take in turn, on one dedicated connection.

When that connection breaks, PostgreSQL frees every lock at once. Two holders do no harm: each
effect is guarded by a compare-and-set. Every role of the database may take any advisory lock, so
one that strangers alone have had for ten seconds counts as free. A process that is stopped, or
whose host is gone, keeps its session: who waits for its lock ends that session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.errors import InsufficientPrivilege

from outbox.clock import Clock, SystemClock
from outbox.postgres.sessions.availability import RIGHTS_LOST, available
from outbox.postgres.sessions.connections import AsyncConnection, conninfo
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
STRANGER_SECONDS: Final = 10.0
"""How long a lock is refused before we ask whose it is; our own rounds are shorter."""
ANSWER_SECONDS: Final = 5.0
"""Longest wait for an answer of PostgreSQL, which waits for nobody here."""
FROZEN_SECONDS: Final = 60.0
"""A holder that asks PostgreSQL nothing for this time counts as frozen: longer than a check."""


class _Seen(NamedTuple):
    """What the session of a holder had last done, and since when that has been so."""

    signs: tuple[Any, ...] | None
    since: float


class PostgresAdvisoryLocks:
    """The AdvisoryLocks on one PostgreSQL session; it is opened on first use and after a break."""

    def __init__(self, database_url: str, clock: Clock | None = None) -> None:
        self._conninfo = conninfo(database_url, "turns")
        self._connection: AsyncConnection | None = None
        self._opening = asyncio.Lock()
        self._clock = clock or SystemClock()
        self._refused: dict[tuple[str, int], float] = {}
        """Since when each lock has been refused without a break."""
        self._seen: dict[tuple[str, int], _Seen] = {}
        """The last signs of life of another holder of each lock."""

    @asynccontextmanager
    async def try_lock(self, kind: str, number: int = 0) -> AsyncIterator[bool]:
        """Hold a lock for the block; see AdvisoryLocks.try_lock."""
        key = {"kind": f"outbox.{kind}", "number": number}
        async with available():
            connection = await self._open()
            held = await _run(connection, "lock", key)
            if held:
                self._refused.pop((kind, number), None)
            try:
                free = held or await self._is_nobodys(connection, kind, number)
            except RIGHTS_LOST:
                await connection.close()
                raise
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

    async def _is_nobodys(self, connection: AsyncConnection, kind: str, number: int) -> bool:
        """Return whether a lock that is refused, for some time now, is held by strangers alone.

        Ends the session of a holder that is frozen; the lock is free a moment later.
        """
        now = self._clock.monotonic()
        if now - self._refused.setdefault((kind, number), now) < STRANGER_SECONDS:
            return False
        key = {"kind": f"outbox.{kind}", "number": number}
        if await _run(connection, "only_strangers", key):
            return True
        self._refused[kind, number] = now
        await self._end_if_frozen(connection, kind, number)
        return False

    async def _end_if_frozen(self, connection: AsyncConnection, kind: str, number: int) -> None:
        """End the holder's session if it has shown no sign of life between two looks."""
        key = {"kind": f"outbox.{kind}", "number": number}
        now, signs = self._clock.monotonic(), await _row(connection, "signs_of_life", key)
        seen = self._seen.get((kind, number))
        if signs is None or seen is None or seen.signs != signs:
            self._seen[kind, number] = _Seen(signs, now)
        elif now - seen.since >= FROZEN_SECONDS:
            del self._seen[kind, number]
            with suppress(InsufficientPrivilege):
                await _run(connection, "end_session", {"pid": signs[0], "began": signs[1]})

    async def _open(self) -> AsyncConnection:
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=1
                )
                self._connection.answer_seconds = ANSWER_SECONDS
            return self._connection


async def _run(connection: AsyncConnection, statement: str, key: Mapping[str, object]) -> bool:
    row = await _row(connection, statement, key)
    return row is not None and bool(row[0])


async def _row(
    connection: AsyncConnection, statement: str, key: Mapping[str, object]
) -> tuple[Any, ...] | None:
    async with connection.cursor() as cursor:
        await cursor.execute(SQL[statement], key)
        return await cursor.fetchone()
