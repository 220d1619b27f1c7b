"""Answers prepares whose transaction ids an earlier prepare has used (P6, D23)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from outbox.messages.message import (
    AlreadyDecided,
    HalfMessage,
    Message,
    MessageStatus,
    Prepared,
    PrepareOutcome,
    TransactionIdReused,
)
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.half_reads import read_whole_halves
from outbox.postgres.messages.half_rows import same_request
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.sync_replication import confirm_what_was_read

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)


async def read_repeated(
    connection: AsyncConnection, messages: Sequence[Message]
) -> Sequence[PrepareOutcome | None]:
    """Answer each repeated prepare with the first message of its transaction id.

    None: that message was retired meanwhile, and its transaction id is free again.
    """
    known = await _known(connection, messages)
    half_ids = sorted({half_id for half_id in known if half_id is not None})
    halves = await read_whole_halves(connection, half_ids)
    statuses = await read_statuses(connection, half_ids, with_publication=False)
    await confirm_what_was_read(connection)
    answers: list[PrepareOutcome | None] = []
    for message, half_id in zip(messages, known, strict=True):
        if half_id in halves and half_id in statuses:
            answers.append(_repeated(message, halves[half_id], statuses[half_id]))
            continue
        if half_id is not None:
            await _forget(connection, message, half_id)
        answers.append(None)
    return answers


async def _known(
    connection: AsyncConnection, messages: Sequence[Message]
) -> Sequence[HalfId | None]:
    """Return the half that each message's transaction id belongs to."""
    asked = [(message.producer_group_id, message.transaction_id) for message in messages]
    cursor = await connection.execute(
        SQL["find_transaction_ids"],
        {
            "groups": [group for group, _ in asked],
            "transaction_ids": [transaction_id for _, transaction_id in asked],
        },
    )
    found = {(group, text): HalfId(half_id) for group, text, half_id in await cursor.fetchall()}
    return [found.get(key) for key in asked]


async def _forget(connection: AsyncConnection, message: Message, half_id: HalfId) -> None:
    """Free the transaction id of a retired half, as its retirement does."""
    await connection.execute(
        SQL["forget_transaction_id"],
        {
            "group": message.producer_group_id,
            "transaction_id": message.transaction_id,
            "half_id": half_id,
        },
    )


def _repeated(message: Message, half: HalfMessage | None, status: MessageStatus) -> PrepareOutcome:
    """Answer one repeated prepare; nothing equals a half whose stored form is broken."""
    if half is None or not same_request(half.message, message):
        return TransactionIdReused(existing_message_id=status.message_id)
    if status.op is not None:
        return AlreadyDecided(status=status)
    return Prepared(half=half, state=status.state, replayed=True)
