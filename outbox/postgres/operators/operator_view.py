"""What an operator at a terminal asks of PostgreSQL: shards, chores, the server itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg
from psycopg.rows import dict_row

from outbox.errors import DatabaseUnavailable
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.statements import load

SQL: Final = load("outbox.postgres.operators.operator_view")

Row = dict[str, Any]
Answer = TypeVar("Answer")


class OperatorView:
    """One connection and its questions; use as a context manager."""

    def __init__(self, database_url: str) -> None:
        """Connect; raises DatabaseUnavailable."""
        try:
            self._connection = connect(database_url, "cli")
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(_first_line(error)) from error

    def __enter__(self) -> OperatorView:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def shards(self) -> list[Row]:
        """Return owner, position, backlog (at most 1 000 flushes deep) and halt of each shard."""
        return self._rows("shards")

    def chores(self) -> list[Row]:
        """Return each chore with the age of its last heartbeat in seconds."""
        return self._rows("chores")

    def server(self) -> Row:
        """Return the version, the durability settings and the clock; see server_facts."""
        return self._asked(lambda: server_facts(self._connection))

    def _rows(self, statement: str) -> list[Row]:
        return self._asked(lambda: _rows(self._connection, statement))

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(_first_line(error)) from error
        except psycopg.errors.UndefinedTable:
            raise DatabaseUnavailable("the database is not migrated") from None


def server_facts(connection: Connection) -> Row:
    """Return the version, the durability settings and the clock (epoch seconds).

    `announced_pid` was told when we connected, `backend_pid` is the process that answers: a
    pooler between us makes them differ. Raises psycopg's errors.
    """
    announced = connection.info.backend_pid
    return {**_rows(connection, "server")[0], "announced_pid": announced}


def _rows(connection: Connection, statement: str) -> list[Row]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(SQL[statement]).fetchall()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
