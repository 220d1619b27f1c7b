"""The inboxes on psycopg 3 (PostgreSQL): for connections, and for asynchronous connections."""

from datetime import timedelta

from psycopg.rows import tuple_row

from outbox_client.barrier import purge_age
from outbox_client.inbox import Record, message_id
from outbox_client.psycopg import (
    AsyncConnection,
    AsyncCursor,
    AsyncPool,
    Connection,
    Cursor,
    Pool,
    async_create,
    async_local_connection,
    async_opened,
    create,
    local_connection,
    opened,
    tuples,
)

CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS outbox_inbox (
  consumer   text NOT NULL,
  message_id text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, message_id)
)"""

# The row and not its count: in a pipeline only a fetch waits for the answer.
INSERT = """
INSERT INTO outbox_inbox (consumer, message_id) VALUES (%s, %s)
ON CONFLICT DO NOTHING RETURNING message_id"""

PURGE = "DELETE FROM outbox_inbox WHERE consumer = %s AND applied_at < now() - %s"


class PsycopgInbox:
    """Remembers which records ``consumer`` has applied; name it as its consumer group."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer

    def first_time(self, db: Connection | Cursor, record: Record, /) -> bool:
        """Return True if ``consumer`` has not applied this record; then apply it in ``db``.

        It waits while another transaction applies the same record. Raises ``DatabaseUnsupported``
        outside a transaction (autocommit), and ValueError if the record is not of the outbox.
        """
        row = (self._consumer, message_id(record))
        return tuples(local_connection(db)).execute(INSERT, row).fetchone() is not None

    def create_table(self, db: Connection | Pool, /) -> None:
        """Create the table if it is missing; several processes may do so at the same time."""
        create(db, CREATE_TABLE)

    def purge(self, db: Connection | Pool, older_than: timedelta, /) -> int:
        """Delete rows of ``consumer`` older than ``older_than`` and return how many.

        A record whose row is deleted counts as new. Raises ValueError below 7 days.
        """
        bound = (self._consumer, purge_age(older_than))
        with opened(db) as connection, connection.transaction():
            return connection.execute(PURGE, bound).rowcount


class AsyncPsycopgInbox:
    """``PsycopgInbox`` on asynchronous connections: the same statements, the same promise."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer

    async def first_time(self, db: AsyncConnection | AsyncCursor, record: Record, /) -> bool:
        """Return True if the record must be applied; as ``PsycopgInbox.first_time``."""
        row = (self._consumer, message_id(record))
        cursor = async_local_connection(db).cursor(row_factory=tuple_row)
        return await (await cursor.execute(INSERT, row)).fetchone() is not None

    async def create_table(self, db: AsyncConnection | AsyncPool, /) -> None:
        """Create the table if it is missing; several processes may do so at the same time."""
        await async_create(db, CREATE_TABLE)

    async def purge(self, db: AsyncConnection | AsyncPool, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than``, return how many; as ``PsycopgInbox.purge``."""
        bound = (self._consumer, purge_age(older_than))
        async with async_opened(db) as connection, connection.transaction():
            return (await connection.execute(PURGE, bound)).rowcount
