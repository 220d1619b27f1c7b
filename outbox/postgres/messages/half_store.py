"""Stores half messages by COPY and decides them by one statement; a call is a flush, one commit.

Nothing here is updated or deleted. A batch is complete before its transaction takes an xid, also
when the batch is retried (O5), so the order of xids is the order of arrival.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import dict_row

from outbox.failpoints import hit
from outbox.messages.message import (
    End,
    EndOutcome,
    HalfMessage,
    Message,
    MessageStatus,
    Prepared,
    PrepareOutcome,
    TransactionIdReused,
    Unstorable,
)
from outbox.messages.message_id import NONCE_BITS, HalfId, Nonce, half_id_of, shard_of
from outbox.messages.record import digest_of
from outbox.postgres.messages.decisions import answer_ends
from outbox.postgres.messages.half_rows import read_half, same_request
from outbox.postgres.messages.half_writer import append_halves, claim_transaction_ids
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.sync_replication import confirm_what_was_read

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)


class PostgresHalfStore:
    """The HalfStore on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._sql_outbox = PostgresSqlOutbox(pool)

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages; see HalfStore.prepare."""
        async with available(), self._pool.connection() as connection:
            return await _prepare(connection, messages)

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages, after earlier commits of the SQL outbox; see HalfStore.end."""
        await self._sql_outbox.admit()
        async with available(), self._pool.connection() as connection:
            return await answer_ends(connection, ends)


async def _prepare(
    connection: AsyncConnection, messages: Sequence[Message]
) -> Sequence[PrepareOutcome]:
    try:
        halves, won = await _flush(connection, messages)
    except psycopg.DataError as error:
        return await _bisect(connection, messages, error)
    lost = [index for index in range(len(messages)) if index not in won]
    replays = await _replay(connection, [messages[index] for index in lost]) if lost else []
    answers: dict[int, PrepareOutcome] = {index: Prepared(half=halves[index]) for index in won}
    answers.update(zip(lost, replays, strict=True))
    return [answers[index] for index in range(len(messages))]


async def _bisect(
    connection: AsyncConnection, messages: Sequence[Message], error: psycopg.DataError
) -> Sequence[PrepareOutcome]:
    """Store a refused batch in two parts, down to the row that PostgreSQL refuses."""
    if len(messages) == 1:
        return [Unstorable(detail=type(error).__name__)]
    middle = len(messages) // 2
    first = await _prepare(connection, messages[:middle])
    return [*first, *await _prepare(connection, messages[middle:])]


async def _flush(
    connection: AsyncConnection, messages: Sequence[Message]
) -> tuple[list[HalfMessage], set[int]]:
    """Store the batch in one transaction; return its halves and the places that were stored."""
    async with connection.transaction(), connection.cursor() as cursor:
        await cursor.execute(SQL["begin_flush"])
        row = await cursor.fetchone()
        assert row is not None
        nonces = _nonces(len(messages))
        halves = [
            _half(message, row[0], n, row[1], nonces[n]) for n, message in enumerate(messages)
        ]
        won = await _claim(cursor, halves)
        await append_halves(cursor, [halves[index] for index in sorted(won)])
        hit("api.prepare.before_commit")
    hit("api.prepare.after_commit")
    return halves, won


def _nonces(count: int) -> list[Nonce]:
    """Return random bits for a whole flush with one call to the system."""
    shift = 64 - NONCE_BITS
    words = struct.unpack(f"{count}Q", secrets.token_bytes(8 * count))
    return [Nonce(word >> shift) for word in words]


def _half(message: Message, xid: int, n: int, prepared_at: datetime, nonce: Nonce) -> HalfMessage:
    content = message.content
    half_id = half_id_of(xid, n, shard_of(content.topic, content.key, nonce))
    return HalfMessage(
        half_id=half_id,
        nonce=nonce,
        message=message,
        prepared_at=prepared_at,
        content_digest=digest_of(
            half_id, nonce, content, message.producer_group, message.transaction_id
        ),
    )


async def _claim(cursor: psycopg.AsyncCursor[Any], halves: Sequence[HalfMessage]) -> set[int]:
    """Claim the batch's transaction ids; return the places of all rows that may be stored."""
    won = await claim_transaction_ids(cursor, halves)
    return {
        n
        for n, half in enumerate(halves)
        if half.message.transaction_id is None or half.half_id in won
    }


async def _replay(connection: AsyncConnection, messages: Sequence[Message]) -> list[PrepareOutcome]:
    """Answer prepares whose transaction ids an earlier prepare has used (P6, D23)."""
    async with connection.cursor() as cursor:
        await cursor.execute(
            SQL["find_transaction_ids"],
            {
                "groups": [message.producer_group_id for message in messages],
                "transaction_ids": [message.transaction_id for message in messages],
            },
        )
        known = {(group, text): half_id for group, text, half_id in await cursor.fetchall()}
    halves = await read_halves(connection, sorted(set(known.values())))
    statuses = await read_statuses(connection, sorted(set(known.values())))
    await confirm_what_was_read(connection)
    return [_replayed(message, known, halves, statuses) for message in messages]


def _replayed(
    message: Message,
    known: dict[tuple[int, str], HalfId],
    halves: dict[HalfId, HalfMessage],
    statuses: dict[HalfId, MessageStatus],
) -> PrepareOutcome:
    half_id = known[(message.producer_group_id, message.transaction_id or "")]
    half = halves[half_id]
    if not same_request(half.message, message):
        return TransactionIdReused(existing_message_id=half.message_id)
    return Prepared(half=half, state=statuses[half_id].state, replayed=True)


async def read_halves(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> dict[HalfId, HalfMessage]:
    """Read stored half messages by id; unknown ids are missing from the answer."""
    if not half_ids:
        return {}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            SQL["read_halves"],
            {"half_ids": list(half_ids), "low": min(half_ids), "high": max(half_ids)},
        )
        return {row["half_id"]: read_half(row) for row in await cursor.fetchall()}
