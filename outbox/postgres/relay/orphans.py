"""Messages that Kafka has and PostgreSQL lost, and their owners by the headers of the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from outbox.messages.record import RecordName, UnnamedRecord
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
RECORD_GONE: Final = ""
"""Stored as the group of a message whose record Kafka no longer has: we do not search it again."""


class PostgresOrphans:
    """Ids in ``already_published`` without a name. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def unnamed(self, limit: int) -> Sequence[UnnamedRecord]:
        """Return the oldest ids whose records were not searched yet."""
        rows = await rows_from(self._pool, SQL["unnamed"], {"limit": limit})
        return [UnnamedRecord(**row) for row in rows]

    async def note(self, sought: Sequence[UnnamedRecord], named: Sequence[RecordName]) -> None:
        """Store what was found, and that the other records are gone."""
        found = {(each.half_id, each.nonce): each for each in named}
        gone = (RecordName(each.half_id, each.nonce, RECORD_GONE, None) for each in sought)
        names = [found.get((each.half_id, each.nonce), each)._asdict() for each in gone]
        async with lent(self._pool) as connection, connection.cursor() as cursor:
            await cursor.executemany(SQL["note"], names)
