"""Reads: rows by the names of their columns, in key order, in one snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row

from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)


async def rows_of(
    connection: AsyncConnection, statement: str, asked: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run a statement; return its rows by the names of their columns, if it has any."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, asked)
        return await cursor.fetchall() if cursor.description else []


async def rows_from(
    pool: AnyPool, statement: str, asked: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run one statement as ``rows_of`` does. Raises DatabaseUnavailable."""
    async with lent(pool) as connection:
        return await rows_of(connection, statement, asked)


async def read_in_key_order(connection: AsyncConnection) -> None:
    """Make the rest of the transaction read by index in key order; see the statement."""
    await connection.execute(SQL["in_key_order"])


@asynccontextmanager
async def one_snapshot(connection: AsyncConnection) -> AsyncIterator[None]:
    """Give every statement of the block the same snapshot; takes no xid and writes nothing.

    A snapshot from before a wait would not see the rows that moved to another leaf meanwhile. So
    the wait comes first: what moves rows begins with the half messages, and locks them alone.
    """
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        await connection.execute("LOCK TABLE outbox.half_message IN ACCESS SHARE MODE")
        yield
