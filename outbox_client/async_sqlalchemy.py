"""The barrier on SQLAlchemy's asyncio: PostgreSQL, through ``AsyncSession`` and ``AsyncEngine``.

A module of its own, because SQLAlchemy's asyncio needs ``greenlet`` (``sqlalchemy[asyncio]``).
"""

from datetime import timedelta

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
)
from sqlalchemy.util import greenlet_spawn

from outbox_client import barrier
from outbox_client.errors import DatabaseUnsupported
from outbox_client.listener import Check
from outbox_client.message import LocalTransactionState, PreparedMessage
from outbox_client.sqlalchemy import SqlAlchemyBarrier

AsyncLocal = AsyncSession | async_scoped_session[AsyncSession] | AsyncConnection


class AsyncSqlAlchemyBarrier:
    """``SqlAlchemyBarrier`` for asyncio, on PostgreSQL: the same statements, the same promise."""

    def __init__(self, lock_timeout: timedelta = barrier.LOCK_TIMEOUT) -> None:
        self._barrier = SqlAlchemyBarrier(lock_timeout)

    async def record(self, db: AsyncLocal, prepared: PreparedMessage, /) -> None:
        """Insert ``committed`` inside the local transaction; as ``SqlAlchemyBarrier.record``."""
        await local_session(db).run_sync(self._barrier.record, prepared)

    async def check(self, db: AsyncEngine, check: Check, /) -> LocalTransactionState:
        """Fence the message unless it is recorded; as ``SqlAlchemyBarrier.check``."""
        return await greenlet_spawn(self._barrier.check, on_postgres(db), check)

    async def create_table(self, db: AsyncEngine, /) -> None:
        """Create the table if it is missing."""
        await greenlet_spawn(self._barrier.create_table, on_postgres(db))

    async def purge(self, db: AsyncEngine, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than`` (at least 7 days) and return how many."""
        return await greenlet_spawn(self._barrier.purge, on_postgres(db), older_than)


def local_session(db: object) -> AsyncSession | AsyncConnection:
    """Return the session of the caller's transaction; DatabaseUnsupported if it is not one."""
    if not isinstance(db, AsyncConnection | AsyncSession | async_scoped_session):
        name = type(db).__name__
        raise DatabaseUnsupported(f"an asynchronous session is needed, not {name}")
    return db() if isinstance(db, async_scoped_session) else db


def on_postgres(engine: AsyncEngine) -> Engine:
    """Return the engine to call in a greenlet; DatabaseUnsupported if it is not PostgreSQL's."""
    name = engine.dialect.name
    if name != "postgresql":
        raise DatabaseUnsupported(f"with asyncio PostgreSQL is supported, not {name}")
    return engine.sync_engine
