"""What operators see of PostgreSQL itself: shards, tasks, the server. One session of its own."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from outbox.errors import DatabaseUnavailable, SchemaBehind
from outbox.postgres.maintenance.gauges import BOUNDS
from outbox.postgres.maintenance.gauges import SQL as GAUGES
from outbox.postgres.maintenance.readiness import SQL as READINESS
from outbox.postgres.sessions.availability import unavailable_on
from outbox.postgres.sessions.connections import connect
from outbox.postgres.sessions.reads import SQL as KEY_ORDER
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.verified_sessions import server_facts

SQL: Final = {**READINESS, **load(__name__)}
ANSWER_SECONDS: Final = 15.0
"""A person waits, or a request of the API."""

Row = dict[str, Any]


class OperatorView:
    """One connection and its queries; use as a context manager."""

    def __init__(self, database_url: str) -> None:
        """Connect; raises DatabaseUnavailable."""
        with unavailable_on(psycopg.OperationalError):
            self._connection = connect(database_url, "cli", answer_seconds=ANSWER_SECONDS)
        self._connection.row_factory = dict_row

    def __enter__(self) -> OperatorView:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rows(self, statement: str) -> list[Row]:
        """Return the rows of a named statement of ``operator_view.sql`` or ``readiness.sql``.

        Raises DatabaseUnavailable, and SchemaBehind for a database that is not migrated.
        """
        with unavailable_on(psycopg.OperationalError):
            return self._connection.execute(SQL[statement]).fetchall()

    def unfinished(self) -> list[Row]:
        """Return the unfinished messages by state, group and topic: number and oldest age (s).

        The state HELD is COMMITTED and refused by Kafka. Reads no history, and of what is open a
        bounded number: ``capped`` says that there are more.
        """
        with unavailable_on(psycopg.OperationalError), self._connection.transaction():
            self._connection.execute(KEY_ORDER["in_key_order"])
            return self._connection.execute(GAUGES["unfinished"], BOUNDS).fetchall()

    def revision(self) -> str | None:
        """Return the newest migration of this database; None if it was never migrated."""
        try:
            with unavailable_on(psycopg.OperationalError):
                found = self._connection.execute(SQL["revision"]).fetchone()
        except SchemaBehind:
            return None
        return found and found["version_num"]

    def write_refusal(self) -> psycopg.Error | None:
        """Write a megabyte and take it back; return the error of a server that refuses.

        A role that may not have temporary tables learns nothing: None.
        """
        try:
            with self._connection.transaction(force_rollback=True):
                self._connection.execute(SQL["write"])
        except psycopg.errors.InsufficientPrivilege:
            return None
        except psycopg.Error as error:
            if self._connection.closed:
                raise DatabaseUnavailable("the connection was lost") from error
            return error
        return None

    def topics(self) -> list[str]:
        """Return the topics that ever had a message."""
        return [row["name"] for row in self.rows("topics")]

    def server(self) -> Row:
        """Return the version, the durability settings and the clock; see server_facts."""
        with unavailable_on(psycopg.OperationalError):
            return server_facts(self._connection)
