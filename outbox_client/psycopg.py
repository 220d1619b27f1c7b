"""The barriers on psycopg 3 (PostgreSQL): for connections, and for asynchronous connections.

``record`` takes the connection (or cursor) of the local transaction; the other calls take an idle
connection or a pool (``psycopg_pool.ConnectionPool``) and run separate transactions.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from datetime import datetime, timedelta
from typing import Any, LiteralString, Protocol

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from outbox_client import barrier
from outbox_client.errors import DatabaseUnsupported, TransactionFenced
from outbox_client.listener import Check
from outbox_client.message import LocalTransactionState, PreparedMessage

Connection = psycopg.Connection[Any]
Cursor = psycopg.Cursor[Any]
AsyncConnection = psycopg.AsyncConnection[Any]
AsyncCursor = psycopg.AsyncCursor[Any]

CREATED_MEANWHILE = (errors.UniqueViolation, errors.DuplicateTable)
"""IF NOT EXISTS sees no table that another session has created and not committed yet."""
CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS outbox_barrier (
  producer_group text NOT NULL,
  message_id     text NOT NULL,
  outcome        text NOT NULL CHECK (outcome IN ('committed', 'fenced')),
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (producer_group, message_id)
)"""

# No older than the message's prepare, whenever the transaction began: see ``barrier.answer``.
RECORD = """
INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
VALUES (%s, %s, 'committed', clock_timestamp())"""

SET_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %s, true)"

# A fence must survive a crash of the database.
MAKE_DURABLE = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') = 'off'"""

FENCE = """
INSERT INTO outbox_barrier (producer_group, message_id, outcome)
VALUES (%s, %s, 'fenced') ON CONFLICT DO NOTHING"""

READ = """
SELECT (SELECT outcome FROM outbox_barrier WHERE producer_group = %s AND message_id = %s),
       (SELECT created_at FROM outbox_barrier WHERE producer_group = %s AND message_id = %s)"""

MARK_PURGE = """
INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
VALUES (%s, %s, 'fenced', clock_timestamp() - %s)
ON CONFLICT (producer_group, message_id) DO UPDATE
SET created_at = greatest(outbox_barrier.created_at, excluded.created_at)
RETURNING created_at"""

PURGE = "DELETE FROM outbox_barrier WHERE created_at < %s AND producer_group <> %s"


class Pool(Protocol):
    """A source of connections, for example ``psycopg_pool.ConnectionPool``."""

    def connection(self) -> AbstractContextManager[Connection]:
        """Lend an idle connection."""
        ...


class AsyncPool(Protocol):
    """A source of connections, for example ``psycopg_pool.AsyncConnectionPool``."""

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Lend an idle connection."""
        ...


class PsycopgBarrier:
    """A barrier whose check waits at most ``lock_timeout`` for an open local transaction.

    Keep ``lock_timeout`` below the group's ``check_timeout_seconds``.
    """

    def __init__(self, lock_timeout: timedelta = barrier.LOCK_TIMEOUT) -> None:
        self._lock_timeout = f"{barrier.milliseconds(lock_timeout)}ms"

    def record(self, db: Connection | Cursor, prepared: PreparedMessage, /) -> None:
        """Insert ``committed`` inside the local transaction.

        Raises ``TransactionFenced``: the transaction must roll back; PostgreSQL allows nothing
        else. Raises ``DatabaseUnsupported`` outside a transaction (autocommit).
        """
        connection = local_connection(db)
        try:
            connection.execute(RECORD, (prepared.producer_group, prepared.message_id))
        except errors.UniqueViolation as error:
            raise TransactionFenced(prepared.message_id) from error

    def check(self, db: Connection | Pool, check: Check, /) -> LocalTransactionState:
        """Fence the message unless it is recorded; return COMMIT if recorded, ROLLBACK if fenced.

        Returns UNKNOWN if the lock timeout expires, or if a purge may have deleted the row. The
        row is read in a separate transaction, after the fence is durable.
        """
        ids = (check.producer_group, check.message_id)
        with opened(db) as connection:
            if not self._fence(connection, ids):
                return LocalTransactionState.UNKNOWN
            outcome, purged_before = _read(connection, ids)
        return barrier.answer(outcome, check.prepared_at, purged_before)

    def create_table(self, db: Connection | Pool, /) -> None:
        """Create the table if it is missing; several processes may do so at the same time."""
        create(db, CREATE_TABLE)

    def purge(self, db: Connection | Pool, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than`` (at least 7 days) and return how many.

        The horizon is stored first, so that a check of an older message answers UNKNOWN.
        """
        age = barrier.purge_age(older_than)
        with opened(db) as connection:
            with connection.transaction():
                mark = (barrier.PURGE_GROUP, barrier.PURGE_MARK, age)
                horizon = tuples(connection).execute(MARK_PURGE, mark).fetchone()
            with connection.transaction():
                bound = (horizon and horizon[0], barrier.PURGE_GROUP)
                return connection.execute(PURGE, bound).rowcount

    def _fence(self, connection: Connection, ids: tuple[str, str]) -> bool:
        try:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                connection.execute(SET_LOCK_TIMEOUT, (self._lock_timeout,))
                connection.execute(MAKE_DURABLE)
                connection.execute(FENCE, ids)
        except errors.LockNotAvailable:
            return False
        return True


class AsyncPsycopgBarrier:
    """``PsycopgBarrier`` on asynchronous connections: the same statements, the same promise."""

    def __init__(self, lock_timeout: timedelta = barrier.LOCK_TIMEOUT) -> None:
        self._lock_timeout = f"{barrier.milliseconds(lock_timeout)}ms"

    async def record(self, db: AsyncConnection | AsyncCursor, prepared: PreparedMessage, /) -> None:
        """Insert ``committed`` inside the local transaction; as ``PsycopgBarrier.record``."""
        connection = async_local_connection(db)
        try:
            await connection.execute(RECORD, (prepared.producer_group, prepared.message_id))
        except errors.UniqueViolation as error:
            raise TransactionFenced(prepared.message_id) from error

    async def check(
        self, db: AsyncConnection | AsyncPool, check: Check, /
    ) -> LocalTransactionState:
        """Fence the message unless it is recorded; as ``PsycopgBarrier.check``."""
        ids = (check.producer_group, check.message_id)
        async with async_opened(db) as connection:
            if not await self._fence(connection, ids):
                return LocalTransactionState.UNKNOWN
            outcome, purged_before = await _async_read(connection, ids)
        return barrier.answer(outcome, check.prepared_at, purged_before)

    async def create_table(self, db: AsyncConnection | AsyncPool, /) -> None:
        """Create the table if it is missing; several processes may do so at the same time."""
        await async_create(db, CREATE_TABLE)

    async def purge(self, db: AsyncConnection | AsyncPool, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than`` (at least 7 days) and return how many."""
        age = barrier.purge_age(older_than)
        mark = (barrier.PURGE_GROUP, barrier.PURGE_MARK, age)
        async with async_opened(db) as connection:
            async with connection.transaction():
                cursor = connection.cursor(row_factory=tuple_row)
                horizon = await (await cursor.execute(MARK_PURGE, mark)).fetchone()
            async with connection.transaction():
                bound = (horizon and horizon[0], barrier.PURGE_GROUP)
                return (await connection.execute(PURGE, bound)).rowcount

    async def _fence(self, connection: AsyncConnection, ids: tuple[str, str]) -> bool:
        try:
            async with connection.transaction():
                await connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                await connection.execute(SET_LOCK_TIMEOUT, (self._lock_timeout,))
                await connection.execute(MAKE_DURABLE)
                await connection.execute(FENCE, ids)
        except errors.LockNotAvailable:
            return False
        return True


def _read(connection: Connection, ids: tuple[str, str]) -> tuple[str | None, datetime | None]:
    with connection.transaction():
        mark = (barrier.PURGE_GROUP, barrier.PURGE_MARK)
        row = tuples(connection).execute(READ, (*ids, *mark)).fetchone()
    return (row[0], row[1]) if row else (None, None)


async def _async_read(
    connection: AsyncConnection, ids: tuple[str, str]
) -> tuple[str | None, datetime | None]:
    async with connection.transaction():
        mark = (barrier.PURGE_GROUP, barrier.PURGE_MARK)
        cursor = connection.cursor(row_factory=tuple_row)
        row = await (await cursor.execute(READ, (*ids, *mark))).fetchone()
    return (row[0], row[1]) if row else (None, None)


def create(db: Connection | Pool, statement: LiteralString) -> None:
    """Create a table in a transaction of its own, unless another process has just done so."""
    with opened(db) as connection, suppress(*CREATED_MEANWHILE), connection.transaction():
        connection.execute(statement)


async def async_create(db: AsyncConnection | AsyncPool, statement: LiteralString) -> None:
    """Create a table as ``create`` does."""
    async with async_opened(db) as connection:
        with suppress(*CREATED_MEANWHILE):
            async with connection.transaction():
                await connection.execute(statement)


def tuples(connection: Connection) -> psycopg.Cursor[TupleRow]:
    """Return a cursor for tuples; the connection may have another row factory."""
    return connection.cursor(row_factory=tuple_row)


def local_connection(db: object) -> Connection:
    """Return the connection of the caller's transaction; DatabaseUnsupported if it is in none."""
    connection = db.connection if isinstance(db, psycopg.Cursor) else db
    if not isinstance(connection, psycopg.Connection):  # an asynchronous one would write nothing
        raise DatabaseUnsupported(f"a psycopg connection is needed, not {type(db).__name__}")
    _refuse_autocommit(connection)
    return connection


def async_local_connection(db: object) -> AsyncConnection:
    """Return the connection of the caller's transaction; DatabaseUnsupported if it is in none."""
    connection = db.connection if isinstance(db, psycopg.AsyncCursor) else db
    if not isinstance(connection, psycopg.AsyncConnection):
        name = type(db).__name__
        raise DatabaseUnsupported(f"an asynchronous psycopg connection is needed, not {name}")
    _refuse_autocommit(connection)
    return connection


def _refuse_autocommit(connection: Connection | AsyncConnection) -> None:
    idle = connection.info.transaction_status == TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise DatabaseUnsupported("this call belongs inside a transaction")


@contextmanager
def opened(db: Connection | Pool) -> Iterator[Connection]:
    """Yield an idle connection; DatabaseUnsupported if it is in a transaction."""
    if isinstance(db, psycopg.Connection):
        _refuse_busy(db)
        yield db
        return
    with db.connection() as connection:
        _refuse_busy(connection)
        yield connection


@asynccontextmanager
async def async_opened(db: AsyncConnection | AsyncPool) -> AsyncIterator[AsyncConnection]:
    """Yield an idle connection; DatabaseUnsupported if it is in a transaction."""
    if isinstance(db, psycopg.AsyncConnection):
        _refuse_busy(db)
        yield db
        return
    async with db.connection() as connection:
        _refuse_busy(connection)
        yield connection


def _refuse_busy(connection: Connection | AsyncConnection) -> None:
    if connection.info.transaction_status != TransactionStatus.IDLE:
        raise DatabaseUnsupported("this call needs a connection that is not in a transaction")
