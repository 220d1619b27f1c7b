"""The status of messages that Kafka has and PostgreSQL lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from psycopg.rows import dict_row

from outbox.messages.message import DecidedBy, End, MessageStatus, OpMessage, Resolution, State
from outbox.messages.message_id import HalfId, Nonce
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)


async def read_orphans(
    connection: AsyncConnection, ends: Sequence[End]
) -> dict[tuple[HalfId, Nonce], MessageStatus]:
    """Read the status of messages that only Kafka has: PUBLISHED, decided COMMIT.

    Runs no statement if ``ends`` is empty. Unknown ids and unnamed records are missing.
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
