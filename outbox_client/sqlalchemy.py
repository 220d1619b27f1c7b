"""The barrier on SQLAlchemy: PostgreSQL, and SQLite in a file.

``record`` takes the session or connection of the local transaction; the other calls take the
engine and run separate transactions. Other databases, and SQLite in memory (where every thread
shares, or misses, the uncommitted rows), are refused: the guarantee was not tested there. For
asyncio there is ``async_sqlalchemy``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    Engine,
    MetaData,
    Select,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session, scoped_session

from outbox_client import barrier
from outbox_client.errors import DatabaseUnsupported, TransactionFenced
from outbox_client.listener import Check
from outbox_client.message import LocalTransactionState, PreparedMessage

metadata = MetaData()
outbox_barrier = Table(
    barrier.TABLE,
    metadata,
    Column("producer_group", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("outcome", Text, CheckConstraint("outcome IN ('committed', 'fenced')"), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
"""The table; if Alembic creates it, add ``metadata`` to its target metadata."""

Local = Session | scoped_session[Session] | Connection

LOCK_NOT_AVAILABLE = "55P03"
SQLITE_BUSY = 5


class SqlAlchemyBarrier:
    """A barrier whose check waits at most ``lock_timeout`` for an open local transaction.

    Keep ``lock_timeout`` below the group's ``check_timeout_seconds``.
    """

    def __init__(self, lock_timeout: timedelta = barrier.LOCK_TIMEOUT) -> None:
        self._lock_timeout_ms = barrier.milliseconds(lock_timeout)

    def record(self, db: Local, prepared: PreparedMessage, /) -> None:
        """Insert ``committed`` inside the local transaction.

        Raises ``TransactionFenced``: the transaction must roll back. Raises
        ``DatabaseUnsupported`` on a database, or through a connection, without the guarantee.
        """
        connection = local_connection(db)
        row: dict[str, Any] = _row(prepared.producer_group, prepared.message_id, barrier.COMMITTED)
        if connection.dialect.name == "postgresql":  # where now() is when the transaction began
            row["created_at"] = func.clock_timestamp()
        try:
            connection.execute(insert(outbox_barrier).values(row))
        except IntegrityError as error:
            raise TransactionFenced(prepared.message_id) from error

    def check(self, db: Engine, check: Check, /) -> LocalTransactionState:
        """Fence the message unless it is recorded; return COMMIT if recorded, ROLLBACK if fenced.

        Returns UNKNOWN if the lock timeout expires, or if a purge may have deleted the row. The
        row is read in a separate transaction, after the fence is durable.
        """
        refuse_unsupported(db)
        if not self._fence(db, check):
            return LocalTransactionState.UNKNOWN
        with db.begin() as connection:
            group, message_id = check.producer_group, check.message_id
            outcome = connection.scalar(_cell("outcome", group, message_id))
            mark = _cell("created_at", barrier.PURGE_GROUP, barrier.PURGE_MARK)
            purged_before = _aware(connection.scalar(mark))
        return barrier.answer(outcome, check.prepared_at, purged_before)

    def create_table(self, db: Engine, /) -> None:
        """Create the table if it is missing; several processes may do so at the same time."""
        create_all(db, metadata)

    def purge(self, db: Engine, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than`` (at least 7 days) and return how many.

        The horizon is stored first, so that a check of an older message answers UNKNOWN.
        """
        age = barrier.purge_age(older_than)
        refuse_unsupported(db)
        with db.begin() as connection:
            horizon = _mark_purge(connection, age)
        with db.begin() as connection:
            old = (outbox_barrier.c.created_at < horizon) & (
                outbox_barrier.c.producer_group != barrier.PURGE_GROUP
            )
            return connection.execute(delete(outbox_barrier).where(old)).rowcount

    def _fence(self, engine: Engine, check: Check) -> bool:
        row = _row(check.producer_group, check.message_id, barrier.FENCED)
        try:
            with self._bounded(engine) as connection:
                connection.execute(insert_if_absent(connection, outbox_barrier, row))
        except OperationalError as error:
            if _is_lock_timeout(error):
                return False
            raise
        return True

    @contextmanager
    def _bounded(self, engine: Engine) -> Iterator[Connection]:
        if engine.dialect.name == "sqlite":
            with _busy_timeout(engine, self._lock_timeout_ms) as connection, connection.begin():
                yield connection
            return
        reading = engine.execution_options(isolation_level="READ COMMITTED")
        with reading.begin() as connection:
            _set_lock_timeout(connection, self._lock_timeout_ms)
            yield connection


def local_connection(db: object) -> Connection:
    """Return the connection of the caller's transaction; DatabaseUnsupported if it is in none."""
    connection = db.connection() if isinstance(db, Session | scoped_session) else db
    if not isinstance(connection, Connection):  # an asynchronous one would write nothing
        raise DatabaseUnsupported(f"a session or connection is needed, not {type(db).__name__}")
    refuse_unsupported(connection.engine)
    if _is_autocommit(connection):
        raise DatabaseUnsupported("this call belongs inside a transaction")
    return connection


def create_all(engine: Engine, tables: MetaData) -> None:
    """Create tables that are missing; several processes may do so at the same time."""
    refuse_unsupported(engine)
    try:
        tables.create_all(engine)
    except DBAPIError:  # another process has just created it, else this is raised again
        tables.create_all(engine)


def refuse_unsupported(engine: Engine) -> None:
    """Raise DatabaseUnsupported unless the guarantee was tested on this database."""
    name = engine.dialect.name
    if name not in ("postgresql", "sqlite"):
        raise DatabaseUnsupported(f"PostgreSQL and SQLite are supported, not {name}")
    database = engine.url.database or ""
    memory = database in ("", ":memory:") or "mode=memory" in str(engine.url)
    if name == "sqlite" and (memory or "::memory:" in database):
        raise DatabaseUnsupported("SQLite in memory has no second connection")


def _is_autocommit(connection: Connection) -> bool:
    dbapi: Any = connection.connection.dbapi_connection
    if connection.dialect.name != "sqlite":
        return connection.dialect.detect_autocommit_setting(dbapi)
    manual = dbapi.isolation_level is None or getattr(dbapi, "autocommit", None) is True
    return manual and not dbapi.in_transaction


def _set_lock_timeout(connection: Connection, milliseconds: int) -> None:
    lock_timeout = text("SELECT set_config('lock_timeout', :value, true)")
    connection.execute(lock_timeout, {"value": f"{milliseconds}ms"})
    # A fence must survive a crash of the database.
    durable = "SELECT set_config('synchronous_commit', 'on', true)"
    connection.execute(text(f"{durable} WHERE current_setting('synchronous_commit') = 'off'"))


@contextmanager
def _busy_timeout(engine: Engine, milliseconds: int) -> Iterator[Connection]:
    with engine.connect() as connection:
        before = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {milliseconds}")
        connection.rollback()
        try:
            yield connection
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(before)}")


def _is_lock_timeout(error: OperationalError) -> bool:
    if getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
        return True
    if getattr(error.orig, "pgcode", None) == LOCK_NOT_AVAILABLE:
        return True
    code = getattr(error.orig, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == SQLITE_BUSY


def insert_if_absent(connection: Connection, table: Table, row: dict[str, str]) -> Any:
    """Return an insert that does nothing if the row exists."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    return dialect.insert(table).values(row).on_conflict_do_nothing()


def time_before(connection: Connection, age: timedelta) -> datetime:
    """Return the database's time ``age`` ago."""
    now = _aware(connection.scalar(select(func.now(type_=DateTime(timezone=True)))))
    if now is None:
        raise DatabaseUnsupported("the database returned no time")
    return now - age


def _mark_purge(connection: Connection, age: timedelta) -> datetime:
    asked = time_before(connection, age)
    mark = _cell("created_at", barrier.PURGE_GROUP, barrier.PURGE_MARK)
    stored = _aware(connection.scalar(mark))
    horizon = max(asked, stored or asked)
    row = _row(barrier.PURGE_GROUP, barrier.PURGE_MARK, barrier.FENCED)
    connection.execute(insert_if_absent(connection, outbox_barrier, row))
    purge_mark = (outbox_barrier.c.producer_group == barrier.PURGE_GROUP) & (
        outbox_barrier.c.message_id == barrier.PURGE_MARK
    )
    connection.execute(update(outbox_barrier).where(purge_mark).values(created_at=horizon))
    return horizon


def _row(group: str, message_id: str, outcome: str) -> dict[str, str]:
    return {"producer_group": group, "message_id": message_id, "outcome": outcome}


def _cell(column: str, group: str, message_id: str) -> Select[Any]:
    is_it = (outbox_barrier.c.producer_group == group) & (outbox_barrier.c.message_id == message_id)
    return select(outbox_barrier.c[column]).where(is_it)


def _aware(moment: datetime | None) -> datetime | None:
    """Add the time zone that SQLite omits; it stores UTC."""
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
