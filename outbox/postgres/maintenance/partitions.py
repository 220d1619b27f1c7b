"""Creates partitions ahead of need, and reports rows that are in default partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)


class PostgresPartitions:
    """The Partitions on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create_ahead(self, count: int) -> int:
        """Create the current partition and the next ``count``, where missing; see Partitions."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["create_leaves"], {"count": count})
            row = await cursor.fetchone()
        assert row is not None
        return int(row[0])

    async def default_rows(self) -> Mapping[str, bool]:
        """Return for each table whether its default partition has rows; see Partitions."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["default_rows"])
            row = await cursor.fetchone()
            columns = cursor.description
        assert row is not None
        assert columns is not None
        return {column.name: bool(found) for column, found in zip(columns, row, strict=True)}
