"""Partitions made ahead of need, and whether any row has missed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from outbox.postgres.sessions.availability import available

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

CREATE: Final = "SELECT outbox.create_leaves(%s)"
DEFAULT_ROWS: Final = """
SELECT EXISTS (SELECT FROM outbox.half_message_default) AS half_message,
    EXISTS (SELECT FROM outbox.op_message_default) AS op_message,
    EXISTS (SELECT FROM outbox.commit_log_default) AS commit_log,
    EXISTS (SELECT FROM outbox.publication_log_default) AS publication_log,
    EXISTS (SELECT FROM outbox.check_attempt_default) AS check_attempt
"""


class PostgresPartitions:
    """The Leaves on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create_ahead(self, count: int) -> int:
        """Create the leaf in use and the next ``count``, where missing; see Leaves."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(CREATE, (count,))
            row = await cursor.fetchone()
        assert row is not None
        return int(row[0])

    async def default_rows(self) -> Mapping[str, bool]:
        """Tell for each table whether its default leaf holds rows; see Leaves."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(DEFAULT_ROWS)
            row = await cursor.fetchone()
            columns = cursor.description
        assert row is not None
        assert columns is not None
        return {column.name: bool(found) for column, found in zip(columns, row, strict=True)}
