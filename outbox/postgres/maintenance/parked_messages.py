"""Parked messages that are to be copied to the parked topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import convert

from outbox.operators.parked_messages import ParkedMessage
from outbox.postgres.messages.half_rows import read_if_whole
from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)


class PostgresParkedMessages:
    """Parked messages on a pool of connections. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def uncopied(self, limit: int) -> Sequence[ParkedMessage]:
        """Return the oldest parked messages without a copy."""
        rows = await rows_from(self._pool, SQL["uncopied"], {"limit": limit})
        return [convert({**row, "half": read_if_whole(row)}, ParkedMessage) for row in rows]

    async def mark_copied(self, copied: Sequence[ParkedMessage]) -> None:
        """Mark messages as copied; a message that was parked again since then stays due."""
        seen = {
            "half_ids": [each.half_id for each in copied],
            "parked": [each.parked_at for each in copied],
        }
        await rows_from(self._pool, SQL["mark_copied"], seen)
