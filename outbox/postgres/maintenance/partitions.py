"""Creates partitions ahead of need, and gives rows that are in default partitions one.

One of our sessions that is frozen would keep a leaf from being made, and all relays from reading
on: it can be ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as pg

from outbox.failpoints import hit
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
ROUNDS: Final = 10
"""How often one call looks what is missing, so that the task can say meanwhile that it is alive."""
FROZEN_SECONDS: Final = 60.0
"""As long as PostgreSQL lets one of our sessions be idle in a transaction."""


class PostgresPartitions:
    """The Partitions on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def newest_xid(self) -> tuple[int, float]:
        """Return the xid that comes next and when that was, in seconds; see Partitions."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["newest_xid"])
            row = await cursor.fetchone()
        assert row is not None
        return int(row[0]), float(row[1])

    async def end_frozen_sessions(self) -> Sequence[tuple[str, int, str | None]]:
        """End our sessions that are frozen in the middle of a statement; see Partitions."""
        async with available(), self._pool.connection() as connection:
            asked = {"seconds": FROZEN_SECONDS}
            cursor = await connection.execute(SQL["end_frozen_sessions"], asked)
            return [(program, pid, host) for program, pid, host in await cursor.fetchall()]

    async def create_ahead(self, count: int) -> int:
        """Create what is missing, one leaf a transaction, oldest first; see Partitions."""
        async with available(), self._pool.connection() as connection:
            for _ in range(ROUNDS):
                missing = await _missing(connection, count)
                try:
                    for leaf in missing:
                        await connection.execute(SQL["create_leaf"], {"leaf": leaf})
                        hit("leaves.after_create")
                except pg.LockNotAvailable:
                    break
                if not missing:
                    break
        return len(missing)

    async def default_rows(self) -> Mapping[str, bool]:
        """Return for each table whether its default partition has rows; see Partitions."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["default_rows"])
            return {table: bool(found) for table, found in await cursor.fetchall()}


async def _missing(connection: Any, count: int) -> list[int]:
    cursor = await connection.execute(SQL["missing"], {"count": count})
    return [int(row[0]) for row in await cursor.fetchall()]
