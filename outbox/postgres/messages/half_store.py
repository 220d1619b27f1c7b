"""Stores half messages by COPY and decides them by one statement; a call is a flush, one commit.

Nothing here is updated or deleted. A batch is complete before its transaction takes an xid, also
when the batch is retried, so the order of xids is the order of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg

from outbox.messages.message import (
    End,
    EndOutcome,
    GroupDeleted,
    Message,
    Prepared,
    PrepareOutcome,
    Unstorable,
)
from outbox.postgres.messages.decisions import answer_ends
from outbox.postgres.messages.half_flush import GroupsDeleted, HalfFlushes
from outbox.postgres.messages.repeated_prepares import read_repeated
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.sessions.availability import available

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool


class PostgresHalfStore:
    """The HalfStore on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._flushes = HalfFlushes()
        self._sql_outbox = PostgresSqlOutbox(pool)

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages; see HalfStore.prepare."""
        async with (
            available(),
            self._pool.connection() as connection,
            self._pool.flushing(connection),
        ):
            return await self._prepare(connection, messages)

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages, after earlier commits of the SQL outbox; see HalfStore.end."""
        await self._sql_outbox.admit()
        async with (
            available(),
            self._pool.connection() as connection,
            self._pool.flushing(connection),
        ):
            return await answer_ends(connection, ends)

    async def _prepare(
        self, connection: AsyncConnection, messages: Sequence[Message]
    ) -> Sequence[PrepareOutcome]:
        if not messages:
            return []
        try:
            flush = await self._flushes.run(connection, messages)
        except psycopg.DataError as error:
            return await self._bisect(connection, messages, error)
        except GroupsDeleted as gone:
            return await self._prepare_others(connection, messages, gone.group_ids)
        lost = [m for m, stored in zip(messages, flush.stored, strict=True) if not stored]
        repeated = iter(await self._answer_repeated(connection, lost) if lost else ())
        return [
            Prepared(half=half) if stored else next(repeated)
            for half, stored in zip(flush.halves, flush.stored, strict=True)
        ]

    async def _prepare_others(
        self, connection: AsyncConnection, messages: Sequence[Message], gone: frozenset[int]
    ) -> Sequence[PrepareOutcome]:
        """Store the messages whose groups are not deleted."""
        others = [message for message in messages if message.producer_group_id not in gone]
        stored = iter(await self._prepare(connection, others))
        return [
            GroupDeleted() if message.producer_group_id in gone else next(stored)
            for message in messages
        ]

    async def _answer_repeated(
        self, connection: AsyncConnection, messages: Sequence[Message]
    ) -> Sequence[PrepareOutcome]:
        """Answer repeated prepares; store those whose first message has just been retired."""
        answers = await read_repeated(connection, messages)
        retired = [m for m, answer in zip(messages, answers, strict=True) if answer is None]
        stored = iter(await self._prepare(connection, retired))
        return [next(stored) if answer is None else answer for answer in answers]

    async def _bisect(
        self, connection: AsyncConnection, messages: Sequence[Message], error: psycopg.DataError
    ) -> Sequence[PrepareOutcome]:
        """Store a refused batch in two parts, down to the row that PostgreSQL refuses."""
        if len(messages) == 1:
            return [Unstorable(detail=type(error).__name__)]
        middle = len(messages) // 2
        first = await self._prepare(connection, messages[:middle])
        return [*first, *await self._prepare(connection, messages[middle:])]
