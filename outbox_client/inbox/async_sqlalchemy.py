"""The inbox on SQLAlchemy's asyncio: PostgreSQL, through ``AsyncSession`` and ``AsyncEngine``.

A module of its own, because SQLAlchemy's asyncio needs ``greenlet`` (``sqlalchemy[asyncio]``).
"""

from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from outbox_client.async_sqlalchemy import AsyncLocal, local_session, on_postgres
from outbox_client.inbox import Record
from outbox_client.inbox.sqlalchemy import SqlAlchemyInbox


class AsyncSqlAlchemyInbox:
    """``SqlAlchemyInbox`` for asyncio, on PostgreSQL: the same statements, the same promise."""

    def __init__(self, consumer: str) -> None:
        self._inbox = SqlAlchemyInbox(consumer)

    async def first_time(self, db: AsyncLocal, record: Record, /) -> bool:
        """Return True if the record must be applied; as ``SqlAlchemyInbox.first_time``."""
        return await local_session(db).run_sync(self._inbox.first_time, record)

    async def create_table(self, db: AsyncEngine, /) -> None:
        """Create the table if it is missing."""
        await greenlet_spawn(self._inbox.create_table, on_postgres(db))

    async def purge(self, db: AsyncEngine, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than``, return how many; as ``SqlAlchemyInbox.purge``."""
        return await greenlet_spawn(self._inbox.purge, on_postgres(db), older_than)
