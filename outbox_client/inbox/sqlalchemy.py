"""The inbox on SQLAlchemy: PostgreSQL, and SQLite in a file."""

from datetime import timedelta

from sqlalchemy import Column, DateTime, Engine, MetaData, Table, Text, delete, func

from outbox_client.barrier import purge_age
from outbox_client.inbox import TABLE, Record, message_id
from outbox_client.sqlalchemy import (
    Local,
    create_all,
    insert_if_absent,
    local_connection,
    refuse_unsupported,
    time_before,
)

metadata = MetaData()
outbox_inbox = Table(
    TABLE,
    metadata,
    Column("consumer", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("applied_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
"""The table; if Alembic creates it, add ``metadata`` to its target metadata."""


class SqlAlchemyInbox:
    """Remembers which records ``consumer`` has applied; name it as its consumer group."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer

    def first_time(self, db: Local, record: Record, /) -> bool:
        """Return True if ``consumer`` has not applied this record; then apply it in ``db``.

        It waits while another transaction applies the same record. Raises ``DatabaseUnsupported``
        outside a transaction or on another database, and ValueError if the record is not of the
        outbox.
        """
        connection = local_connection(db)
        row = {"consumer": self._consumer, "message_id": message_id(record)}
        inserted = insert_if_absent(connection, outbox_inbox, row)
        return connection.scalar(inserted.returning(outbox_inbox.c.message_id)) is not None

    def create_table(self, db: Engine, /) -> None:
        """Create the table if it is missing; several processes may do so at the same time."""
        create_all(db, metadata)

    def purge(self, db: Engine, older_than: timedelta, /) -> int:
        """Delete rows of ``consumer`` older than ``older_than`` and return how many.

        A record whose row is deleted counts as new. Raises ValueError below 7 days.
        """
        age = purge_age(older_than)
        refuse_unsupported(db)
        with db.begin() as connection:
            old = outbox_inbox.c.applied_at < time_before(connection, age)
            mine = outbox_inbox.c.consumer == self._consumer
            return connection.execute(delete(outbox_inbox).where(mine, old)).rowcount
