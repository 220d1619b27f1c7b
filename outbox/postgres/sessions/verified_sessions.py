"""Sessions that are opened only on a server that is safe to use.

After a restart, a failover, a restore, or a change of the address behind the URL, PostgreSQL may
have other settings than when the program started, or lower transaction ids. Ids are made of the
cluster's transaction ids plus `installation.base`. Where a dump was restored, new ids would lie
below the positions and the cursors: no relay would publish and no checker would check the messages.
`outbox installation rebase` raises the base.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.rows import dict_row

from outbox.errors import ConfigurationError, IdsBehind, UnsafeServer
from outbox.operators.health_check import failed
from outbox.operators.server_requirements import judge_postgres
from outbox.postgres.sessions.availability import LACKING
from outbox.postgres.sessions.connections import (
    PLAN_ONCE_IN_ORDER,
    AsyncConnection,
    Connection,
    connect,
)
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
RELAY_SECONDS: Final = 30.0
"""Longest silence of PostgreSQL during an exchange of a relay, which reads and writes one batch."""


class IdCounter(NamedTuple):
    """The next transaction id with the base added, and the highest one that is stored."""

    following: int
    highest: int

    @property
    def is_behind(self) -> bool:
        """Return whether a new id could be one that positions and cursors have passed."""
        return self.following <= self.highest


def connect_verified(database_url: str, application: str) -> Connection:
    """Open a relay's connection as `connect` does; raises UnsafeServer."""
    connection = connect(
        database_url, application, PLAN_ONCE_IN_ORDER, answer_seconds=RELAY_SECONDS
    )
    with ExitStack() as unless_safe:
        unless_safe.callback(connection.close)
        unsafe = failed(judge_postgres(server_facts(connection)))
        if unsafe:
            found = "; ".join(f"{each.check}: {each.detail}" for each in unsafe)
            raise UnsafeServer(f"unsafe settings: {found}")
        refuse_ids_behind(connection)
        unless_safe.pop_all()
    return connection


def refuse_to_start_behind(database_url: str, application: str) -> str | None:
    """Raise ConfigurationError if new ids would be too low; return why a server does not answer.

    Such a server passes: its sessions are judged when they open.
    """
    try:
        with connect(database_url, application) as connection:
            refuse_ids_behind(connection)
    except IdsBehind as error:
        raise ConfigurationError(str(error)) from None
    except psycopg.Error as error:
        return str(error).strip().splitlines()[0]
    return None


def server_facts(connection: Connection) -> dict[str, Any]:
    """Return the version, the durability settings, the encoding and the clock (epoch seconds).

    `announced_pid` is the process id that the server sent at connect, `backend_pid` is the process
    that answers: with a pooler in between they differ. Raises psycopg's errors.
    """
    announced = connection.info.backend_pid
    with connection.cursor(row_factory=dict_row) as cursor:
        facts = cursor.execute(SQL["server"]).fetchall()[0]
    return {**facts, "announced_pid": announced}


def read_id_counter(session: Connection) -> IdCounter:
    """Read both in one snapshot. Raises psycopg's errors."""
    (counter,) = session.execute(SQL["counter"]).fetchall()
    return IdCounter(*counter)


def refuse_ids_behind(session: Connection) -> None:
    """Raise IdsBehind if new ids would be too low; a database without our tables passes."""
    with suppress(*LACKING):
        _judge(read_id_counter(session))


async def refuse_pool_behind(session: AsyncConnection) -> None:
    """Do the same for a session of a pool."""
    with suppress(*LACKING):
        (counter,) = await (await session.execute(SQL["counter"])).fetchall()
        _judge(IdCounter(*counter))


def _judge(counter: IdCounter) -> None:
    if counter.is_behind:
        raise IdsBehind(counter.following, counter.highest)
