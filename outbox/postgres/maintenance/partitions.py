"""Creates partitions ahead of need, and gives rows that are in default partitions one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as pg

from outbox.failpoints import hit
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.reads import rows_from, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
MOVE_SECONDS: Final = 2.0
"""How long rows may move from a default leaf: every prepare waits meanwhile."""


class PostgresPartitions:
    """The Partitions on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def newest_xid(self) -> tuple[int, float]:
        """Return the xid that comes next and when that was, in seconds; see Partitions."""
        (row,) = await rows_from(self._pool, SQL["newest_xid"], {})
        return int(row["xid"]), float(row["at"])

    async def create_ahead(self, count: int) -> int:
        """Create what is missing, one leaf a transaction, oldest first; see Partitions."""
        large = set[int]()
        async with lent(self._pool) as connection:
            while missing := [x for x in await _missing(connection, count) if x not in large]:
                for leaf in missing:
                    try:
                        await _create(connection, leaf)
                    except pg.LockNotAvailable:
                        return len(missing)
                    except (pg.ProgramLimitExceeded, pg.QueryCanceled):
                        large.add(leaf)
        return 0

    async def default_rows(self) -> Mapping[str, bool]:
        """Return for each table whether its default partition has rows; see Partitions."""
        rows = await rows_from(self._pool, SQL["default_rows"], {})
        return {row["table_name"]: row["found"] for row in rows}


async def _missing(connection: Any, count: int) -> list[int]:
    rows = await rows_of(connection, SQL["missing"], {"count": count})
    return [row["leaf"] for row in rows]


async def _create(connection: Any, leaf: int) -> None:
    async with connection.transaction():
        await connection.execute(f"SET LOCAL statement_timeout = {MOVE_SECONDS * 1000:.0f}")
        await connection.execute(SQL["create_leaf"], {"leaf": leaf})
    hit("leaves.after_create")
