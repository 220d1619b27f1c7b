"""Stores half messages by COPY and decides them by one statement; a call is a flush, one commit.

Nothing here is updated or deleted. A batch is complete before its transaction takes an xid, so the
order of xids is the order of arrival. The rules of a prepare keep out what no row can have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from outbox.errors import DatabaseUnavailable
from outbox.messages.message import (
    AlreadyDecided,
    End,
    EndOutcome,
    GroupDeleted,
    Message,
    MessageStatus,
    Prepared,
    PrepareOutcome,
    TransactionIdReused,
)
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.decisions import answer_ends
from outbox.postgres.messages.half_flush import GroupsDeleted, flush
from outbox.postgres.messages.half_rows import difference, read_decisions
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.sync_replication import confirm_what_was_read

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
RETIRED: Final = "the message of a transaction id has just been retired: repeat the prepare"


class PostgresHalfStore:
    """Stores half messages and their decisions; one call is one flush and one database commit."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._sql_outbox = PostgresSqlOutbox(pool)

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages durably and answer in the order of the request.

        At most ``ROWS_PER_TRANSACTION`` messages per call, with their followers. Raises
        DatabaseUnavailable when nothing is known to be stored.
        """
        if not messages:
            return []
        try:
            async with lent(self._pool) as connection, self._pool.flushing(connection):
                return await _prepare(connection, messages)
        except GroupsDeleted as deleted:
            gone = deleted.group_ids
        others = [message for message in messages if message.producer_group_id not in gone]
        stored = iter(await self.prepare(others))
        return [
            GroupDeleted() if message.producer_group_id in gone else next(stored)
            for message in messages
        ]

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages and answer in the order of the request; the first wins (G2).

        Earlier commits of the SQL outbox come first. UNKNOWN writes nothing. Raises
        DatabaseUnavailable; the same ends may be repeated.
        """
        await self._sql_outbox.admit()
        async with lent(self._pool) as connection, self._pool.flushing(connection):
            return await answer_ends(connection, ends)


async def _prepare(
    connection: AsyncConnection, messages: Sequence[Message]
) -> Sequence[PrepareOutcome]:
    """Flush the messages. Raises GroupsDeleted; nothing is stored then."""
    flushed = await flush(connection, messages)
    lost = [m for m, (_, stored) in zip(messages, flushed, strict=True) if not stored]
    repeated = iter(await _answer_repeated(connection, lost) if lost else ())
    return [prepared if stored else next(repeated) for prepared, stored in flushed]


async def _answer_repeated(
    connection: AsyncConnection, messages: Sequence[Message]
) -> Sequence[PrepareOutcome]:
    """Answer each repeated prepare with the first message of its transaction id.

    Raises DatabaseUnavailable if such a message was retired meanwhile.
    """
    known = await _known(connection, messages)
    half_ids = sorted(set(known))
    stored = await read_decisions(connection, half_ids)
    statuses = await read_statuses(connection, half_ids, with_publication=False)
    await confirm_what_was_read(connection)
    if len(statuses) < len(half_ids):
        raise DatabaseUnavailable(RETIRED)
    return [
        _repeated(message, stored.get(half_id), statuses[half_id])
        for message, half_id in zip(messages, known, strict=True)
    ]


async def _known(connection: AsyncConnection, messages: Sequence[Message]) -> Sequence[HalfId]:
    """Return the half that each message's transaction id belongs to."""
    asked = {
        "groups": [message.producer_group_id for message in messages],
        "transaction_ids": [message.transaction_id for message in messages],
    }
    cursor = await connection.execute(SQL["find_transaction_ids"], asked)
    known = [half_id for (half_id,) in await cursor.fetchall()]
    if None in known:
        raise DatabaseUnavailable(RETIRED)
    return known


def _repeated(message: Message, stored: Prepared | None, status: MessageStatus) -> PrepareOutcome:
    """Answer one repeated prepare; nothing equals a half whose stored form is broken.

    Where followers have gone with their leaf, they cannot be compared: the decision is the answer.
    """
    if stored and status.op and len(stored.followers) < len(stored.half.followers):
        return AlreadyDecided(status=status)
    differs = difference(stored.half.message, message) if stored else "content"
    if stored is None or differs is not None:
        return TransactionIdReused(existing_message_id=status.message_id, member=str(differs))
    if status.op is not None:
        return AlreadyDecided(status=status)
    return replace(stored, state=status.state, replayed=True)
