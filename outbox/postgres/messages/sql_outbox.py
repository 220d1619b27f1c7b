"""Plain outbox mode: admits what producers published in transactions of their own.

``outbox.publish`` leaves a row that is visible if and only if its transaction committed. Admitting
turns such rows into halves with their ops and commit log, in one short transaction of ours, so that
the relay and everything behind it see an ordinary commit whose xid is young, however old the
producer's is. Of two messages the one whose transaction had committed when the other was published
is admitted first (O1): every snapshot that has the second has the first, and calls are numbered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row

from outbox.clock import Clock, SystemClock
from outbox.failpoints import hit
from outbox.messages.message import Content, End, HalfMessage, Message, Resolution
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import digest_of
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.half_rows import COPY_TYPES, copy_row, read_headers
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load("outbox.postgres.messages.sql_outbox")
FLUSH: Final = load("outbox.postgres.messages.half_store")
BATCH_MAX: Final = 2000
NOTHING_SEEN: Final = "1:1:"
"""A snapshot before every transaction."""

OFF_SECONDS: Final = 5.0
"""How long a process goes on without asking whether the mode was turned on."""

LOOK_AT_ALL_SECONDS: Final = 30.0
"""How long a remembered snapshot counts: after a failover it may be one of another history."""


class PostgresSqlOutbox:
    """Admits published messages; any number of processes may, one at a time does."""

    def __init__(
        self, pool: Pool, *, batch_max: int = BATCH_MAX, clock: Clock | None = None
    ) -> None:
        self._pool = pool
        self._batch_max = batch_max
        self._clock = clock or SystemClock()
        self._off_until = 0.0
        self._seen = NOTHING_SEEN
        self._seen_until = 0.0

    async def admit(self) -> int | None:
        """Admit every message that has committed before this call; return how many.

        None says that the mode is off. Raises DatabaseUnavailable; nothing is lost then.
        """
        now = self._clock.monotonic()
        if now < self._off_until:
            return None
        if now >= self._seen_until:
            self._seen, self._seen_until = NOTHING_SEEN, now + LOOK_AT_ALL_SECONDS
        async with available(), self._pool.connection() as connection:
            if not await _is_on(connection):
                self._off_until = now + OFF_SECONDS
                return None
            return await self._admit(connection)

    async def _admit(self, connection: AsyncConnection) -> int:
        """Admit what waits; what the first look saw need not be looked at again."""
        seen = self._seen
        cursor = await connection.execute(SQL["look"], {"seen": seen})
        row = await cursor.fetchone()
        assert row is not None
        snapshot, waits = row
        admitted, taken = 0, self._batch_max if waits else 0
        while taken == self._batch_max:
            taken = await _admit_batch(connection, seen, self._batch_max)
            admitted += taken
        self._seen = snapshot
        return admitted


async def _is_on(connection: AsyncConnection) -> bool:
    row = await (await connection.execute(SQL["is_on"])).fetchone()
    return bool(row and row[0])


async def _admit_batch(connection: AsyncConnection, seen: str, most: int) -> int:
    """Admit one batch in one transaction; the lock comes first, the xid and the rows after it."""
    async with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["lock"])
        await cursor.execute(SQL["take"], {"seen": seen, "most": most})
        halves = [_half(row) for row in await cursor.fetchall()]
        if halves:
            hit("plain.after_take")
            await _store(connection, halves)
            await decide(connection, [_commit(half) for half in halves])
            hit("plain.before_commit")
    if halves:
        hit("plain.after_commit")
    return len(halves)


async def _store(connection: AsyncConnection, halves: Sequence[HalfMessage]) -> None:
    """Append the halves; a transaction id that is taken stays with the message that has it."""
    keyed = [half for half in halves if half.message.transaction_id is not None]
    async with connection.cursor() as cursor:
        await cursor.execute(
            FLUSH["claim_transaction_ids"],
            {
                "groups": [half.message.producer_group_id for half in keyed],
                "transaction_ids": [half.message.transaction_id for half in keyed],
                "half_ids": [half.half_id for half in keyed],
            },
        )
        async with cursor.copy(FLUSH["copy_halves"]) as copy:
            copy.set_types(COPY_TYPES)
            for half in halves:
                await copy.write_row(copy_row(half))


def _commit(half: HalfMessage) -> End:
    return End(half_id=half.half_id, nonce=half.nonce, decision=Resolution.COMMIT)


def _half(row: Mapping[str, Any]) -> HalfMessage:
    content = Content(
        topic=row["topic"],
        value=row["value"],
        key=row["key"],
        headers=read_headers(row["headers"]),
        content_type=row["content_type"],
    )
    half_id, nonce = HalfId(row["half_id"]), Nonce(row["nonce"])
    group, transaction_id = row["producer_group"], row["transaction_id"]
    return HalfMessage(
        half_id=half_id,
        nonce=nonce,
        message=Message(
            content=content,
            producer_group=group,
            producer_group_id=row["producer_group_id"],
            topic_id=row["topic_id"],
            transaction_id=transaction_id,
        ),
        prepared_at=row["published_at"],
        content_digest=digest_of(half_id, nonce, content, group, transaction_id),
    )
