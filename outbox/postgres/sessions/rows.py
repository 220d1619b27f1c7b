"""Reads rows as dictionaries, by the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection


async def rows_of(
    connection: AsyncConnection, statement: str, asked: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run a statement; return its rows by the names of their columns, if it has any."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, asked)
        return await cursor.fetchall() if cursor.description else []
