"""Parked messages that are to be copied to the parked topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from psycopg.rows import dict_row

from outbox.messages.message import ParkedReason
from outbox.messages.message_id import HalfId
from outbox.operators.parked_messages import ParkedMessage
from outbox.postgres.messages.half_rows import read_if_whole
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)


class PostgresParkedMessages:
    """The ParkedMessages on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def uncopied(self, limit: int) -> Sequence[ParkedMessage]:
        """Return the oldest that have no copy; see ParkedMessages."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["uncopied"], {"limit": limit})
            rows = await cursor.fetchall()
        return [
            ParkedMessage(
                half_id=HalfId(row["half_id"]),
                half=read_if_whole(row),
                parked_at=row["parked_at"],
                read_at=row["read_at"],
                parked_reason=ParkedReason(row["parked_reason"]),
                check_count=row["check_count"],
            )
            for row in rows
        ]

    async def mark_copied(self, copied: Sequence[ParkedMessage]) -> None:
        """Record that the topic has them; see ParkedMessages."""
        seen = {
            "half_ids": [each.half_id for each in copied],
            "parked": [each.parked_at for each in copied],
        }
        async with available(), self._pool.connection() as connection:
            await connection.execute(SQL["mark_copied"], seen)
