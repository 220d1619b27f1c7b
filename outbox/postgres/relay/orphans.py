"""Messages that Kafka has and PostgreSQL lost: whose they were, by the headers of their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from psycopg.rows import class_row, dict_row

from outbox.messages.message import DecidedBy, End, MessageStatus, OpMessage, Resolution, State
from outbox.messages.message_id import HalfId, Nonce
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load
from outbox.relay.ports import RecordName, UnnamedRecord

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load("outbox.postgres.relay.orphans")
GONE: Final = ""
"""Stored as the group of a message whose record Kafka no longer has: it is not looked for again."""


class PostgresOrphans:
    """The Orphans on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def unnamed(self, limit: int) -> Sequence[UnnamedRecord]:
        """Return ids whose records were not yet looked for; see Orphans."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=class_row(UnnamedRecord)) as cursor,
        ):
            await cursor.execute(SQL["unnamed"], {"limit": limit})
            return await cursor.fetchall()

    async def topics(self) -> Sequence[str]:
        """Return the topics that may hold their records; see Orphans."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["topics"])
            return [row[0] for row in await cursor.fetchall()]

    async def note(self, sought: Sequence[UnnamedRecord], named: Sequence[RecordName]) -> None:
        """Store what was found, and that the others are gone; see Orphans."""
        names = {(each.half_id, each.nonce): each for each in named}
        found = [names.get((each.half_id, each.nonce)) for each in sought]
        asked = {
            "half_ids": [each.half_id for each in sought],
            "nonces": [each.nonce for each in sought],
            "groups": [each.producer_group if each else GONE for each in found],
            "transaction_ids": [each.transaction_id if each else None for each in found],
        }
        async with available(), self._pool.connection() as connection:
            await connection.execute(SQL["note"], asked)


async def read_orphans(
    connection: AsyncConnection, ends: Sequence[End]
) -> dict[tuple[HalfId, Nonce], MessageStatus]:
    """Read where those messages stand that only Kafka has: PUBLISHED, and COMMIT is the decision.

    Costs nothing where every end names a half. Unknown ids and unnamed records are missing.
    """
    if not ends:
        return {}
    asked = {
        "half_ids": [end.half_id for end in ends],
        "nonces": [end.nonce for end in ends],
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["find"], asked)
        return {
            (row["half_id"], row["nonce"]): MessageStatus(
                half_id=row["half_id"],
                nonce=row["nonce"],
                producer_group_id=row["producer_group_id"],
                state=State.PUBLISHED,
                transaction_id=row["transaction_id"],
                op=OpMessage(
                    decision=Resolution.COMMIT,
                    decided_by=DecidedBy.RECOVERY,
                    decided_at=row["found_at"],
                    reason="its record was in Kafka",
                ),
            )
            for row in await cursor.fetchall()
        }
