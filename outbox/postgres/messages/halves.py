"""The table of half messages: its COPY, and reads by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.half_rows import bounds, read_if_whole
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
COPY_HALVES: Final = SQL["copy_halves"]


async def read_whole_halves(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> dict[HalfId, HalfMessage | None]:
    """Read halves by id without unknown ids; None is a half whose stored form is broken."""
    return {row["half_id"]: read_if_whole(row) for row in await _rows(connection, half_ids)}


async def _rows(connection: AsyncConnection, half_ids: Sequence[HalfId]) -> list[dict[str, Any]]:
    if not half_ids:
        return []
    asked = {"half_ids": list(half_ids), **bounds(half_ids)}
    return await rows_of(connection, SQL["read_halves"], asked)
