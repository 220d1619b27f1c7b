"""Reads stored half messages by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row

from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.half_rows import read_half, read_if_whole
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)


async def read_halves(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> dict[HalfId, HalfMessage]:
    """Read stored half messages by id; unknown ids are missing from the answer."""
    return {row["half_id"]: read_half(row) for row in await _rows(connection, half_ids)}


async def read_whole_halves(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> dict[HalfId, HalfMessage | None]:
    """Do the same; None is a half whose stored form is broken."""
    return {row["half_id"]: read_if_whole(row) for row in await _rows(connection, half_ids)}


async def _rows(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> Sequence[dict[str, Any]]:
    if not half_ids:
        return []
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            SQL["read_halves"],
            {"half_ids": list(half_ids), "low": min(half_ids), "high": max(half_ids)},
        )
        return await cursor.fetchall()
