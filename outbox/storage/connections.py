"""Connections to PostgreSQL, opened with the settings that the guarantees rest on.

``synchronous_commit=on`` makes an acknowledged commit durable (G1); ``force_custom_plan`` lets
every statement prune partitions; UTC keeps times comparable. One asyncio pool a process, and plain
connections for the relay's threads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool

from outbox.clock import SystemClock

SESSION_OPTIONS: Final = (
    "-c synchronous_commit=on -c plan_cache_mode=force_custom_plan -c timezone=UTC"
    " -c idle_in_transaction_session_timeout=60000 -c jit=off"
)

IDLE_SECONDS: Final = 0.5
"""A connection unused for this long is asked for a sign of life before it is used again."""

AsyncConnection = psycopg.AsyncConnection[Any]
Connection = psycopg.Connection[Any]
Pool = AsyncConnectionPool[AsyncConnection]


def conninfo(database_url: str, application: str) -> str:
    """Return the connection string with our session options and a name for pg_stat_activity."""
    return make_conninfo(
        database_url,
        options=SESSION_OPTIONS,
        application_name=f"outbox-{application}",
        keepalives_idle=10,
        keepalives_interval=3,
        keepalives_count=3,
        connect_timeout=5,
    )


def make_pool(database_url: str, application: str, *, pool_max: int, pool_min: int = 2) -> Pool:
    """Return a closed pool of autocommit connections; open it with ``async with``."""
    return AsyncConnectionPool(
        conninfo(database_url, application),
        min_size=min(pool_min, pool_max),
        max_size=pool_max,
        open=False,
        timeout=5,
        kwargs={"autocommit": True, "prepare_threshold": 1},
        check=_CheckAfterAPause(),
    )


class _CheckAfterAPause:
    """Asks an idle connection whether it still lives; a busy one has just shown it."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[AsyncConnection, float] = WeakKeyDictionary()
        self._clock = SystemClock()

    async def __call__(self, connection: AsyncConnection) -> None:
        now = self._clock.monotonic()
        if now - self._seen.get(connection, -IDLE_SECONDS) >= IDLE_SECONDS:
            await AsyncConnectionPool.check_connection(connection)
        self._seen[connection] = now


def connect(database_url: str, application: str) -> Connection:
    """Open one autocommit connection for a thread that keeps it to itself."""
    return psycopg.connect(
        conninfo(database_url, application), autocommit=True, prepare_threshold=1
    )


@asynccontextmanager
async def one_snapshot(connection: AsyncConnection) -> AsyncIterator[None]:
    """Let every statement of the block see the same instant; it takes no xid and writes nothing."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
