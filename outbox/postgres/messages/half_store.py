"""Stores half messages by COPY and decides them by one statement; a call is a flush, one commit.

Nothing here is updated or deleted. A batch is complete before its transaction takes an xid, also
when the batch is retried (O5), so the order of xids is the order of arrival.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import psycopg

from outbox.failpoints import hit
from outbox.messages.message import (
    End,
    EndOutcome,
    GroupDeleted,
    HalfMessage,
    Message,
    Prepared,
    PrepareOutcome,
    Unstorable,
)
from outbox.messages.message_id import NONCE_BITS, Nonce, half_id_of, shard_of
from outbox.messages.record import digest_of
from outbox.postgres.messages.decisions import answer_ends
from outbox.postgres.messages.half_writer import append_halves, claim_transaction_ids
from outbox.postgres.messages.repeated_prepares import read_repeated
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

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
        flush = await _flush(connection, messages)
    except psycopg.DataError as error:
        return await _bisect(connection, messages, error)
    answers: dict[int, PrepareOutcome] = {n: Prepared(half=flush.halves[n]) for n in flush.won}
    answers.update(dict.fromkeys(flush.deleted, GroupDeleted()))
    lost = [n for n in range(len(messages)) if n not in answers]
    if lost:
        repeated = await _answer_repeated(connection, [messages[n] for n in lost])
        answers.update(zip(lost, repeated, strict=True))
    return [answers[n] for n in range(len(messages))]


async def _answer_repeated(
    connection: AsyncConnection, messages: Sequence[Message]
) -> Sequence[PrepareOutcome]:
    """Answer repeated prepares; store those whose first message has just been retired."""
    answers = await read_repeated(connection, messages)
    retired = [m for m, answer in zip(messages, answers, strict=True) if answer is None]
    stored = iter(await _prepare(connection, retired) if retired else ())
    return [next(stored) if answer is None else answer for answer in answers]


async def _bisect(
    connection: AsyncConnection, messages: Sequence[Message], error: psycopg.DataError
) -> Sequence[PrepareOutcome]:
    """Store a refused batch in two parts, down to the row that PostgreSQL refuses."""
    if len(messages) == 1:
        return [Unstorable(detail=type(error).__name__)]
    middle = len(messages) // 2
    first = await _prepare(connection, messages[:middle])
    return [*first, *await _prepare(connection, messages[middle:])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flush:
    """A committed flush: its halves, the places stored, and those of deleted groups."""

    halves: Sequence[HalfMessage]
    won: set[int]
    deleted: set[int]


async def _flush(connection: AsyncConnection, messages: Sequence[Message]) -> _Flush:
    """Store the batch in one transaction, except messages of groups that are deleted."""
    async with connection.transaction(), connection.cursor() as cursor:
        groups = {message.producer_group_id for message in messages}
        await cursor.execute(SQL["begin_flush"], {"groups": sorted(groups)})
        row = await cursor.fetchone()
        assert row is not None
        xid, at, gone = row
        nonces = _nonces(len(messages))
        halves = [_half(message, xid, n, at, nonces[n]) for n, message in enumerate(messages)]
        deleted = {n for n, each in enumerate(messages) if each.producer_group_id in gone}
        won = await _claim(cursor, halves, deleted)
        await append_halves(cursor, [halves[n] for n in sorted(won)])
        hit("api.prepare.before_commit")
    hit("api.prepare.after_commit")
    return _Flush(halves=halves, won=won, deleted=deleted)


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


async def _claim(
    cursor: psycopg.AsyncCursor[Any], halves: Sequence[HalfMessage], deleted: set[int]
) -> set[int]:
    """Claim the batch's transaction ids; return the places of all rows that may be stored."""
    live = {n: half for n, half in enumerate(halves) if n not in deleted}
    won = await claim_transaction_ids(cursor, list(live.values()))
    return {
        n for n, half in live.items() if half.message.transaction_id is None or half.half_id in won
    }
