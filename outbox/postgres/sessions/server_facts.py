"""The server behind a session: its version, its settings, its encoding, its process and clock."""

from __future__ import annotations

from typing import Any, Final

from psycopg.rows import dict_row

from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)


def server_facts(connection: Connection) -> dict[str, Any]:
    """Return the version, the durability settings, the encoding and the clock (epoch seconds).

    `announced_pid` is the process id that the server sent at connect, `backend_pid` is the process
    that answers: with a pooler in between they differ. Raises psycopg's errors.
    """
    announced = connection.info.backend_pid
    with connection.cursor(row_factory=dict_row) as cursor:
        facts = cursor.execute(SQL["server"]).fetchall()[0]
    return {**facts, "announced_pid": announced}
