"""Whether new ids of this cluster come after every id that is stored.

Ids are made of the cluster's transaction ids plus `installation.base`. In a cluster with lower
transaction ids, where a dump was restored, new ids would lie below the positions and the cursors:
nobody would publish or check the messages. `outbox installation rebase` raises the base.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from psycopg import errors as pg

from outbox.errors import IdsBehind
from outbox.postgres.sessions.connections import AsyncConnection, Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
NOT_MIGRATED: Final = (pg.InvalidSchemaName, pg.UndefinedTable, pg.UndefinedColumn)


class IdCounter(NamedTuple):
    """The next transaction id with the base added, and the highest one that is stored."""

    following: int
    highest: int

    @property
    def is_behind(self) -> bool:
        """Return whether a new id could be one that positions and cursors have passed."""
        return self.following <= self.highest


def read_id_counter(session: Connection) -> IdCounter:
    """Read both in one snapshot. Raises psycopg's errors."""
    row = session.execute(SQL["counter"]).fetchone()
    assert row is not None
    return IdCounter(*row)


def refuse_ids_behind(session: Connection) -> None:
    """Raise IdsBehind if new ids would be too low; a database without our tables passes."""
    with suppress(*NOT_MIGRATED):
        _judge(read_id_counter(session))


async def refuse_pool_behind(session: AsyncConnection) -> None:
    """Do the same for a session of a pool."""
    with suppress(*NOT_MIGRATED):
        row = await (await session.execute(SQL["counter"])).fetchone()
        assert row is not None
        _judge(IdCounter(*row))


def _judge(counter: IdCounter) -> None:
    if counter.is_behind:
        raise IdsBehind(counter.following, counter.highest)
