"""Reads that follow an index in key order, whatever the planner expects of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)


async def read_in_key_order(connection: AsyncConnection) -> None:
    """Make the rest of the transaction read by index in key order; see the statement."""
    await connection.execute(SQL["in_key_order"])
