"""SQL mode: admits messages that producers published in their own database transactions.

``outbox.publish`` writes a row that is visible if and only if its transaction committed. Admitting
turns such rows into halves with their ops and commit log, in one short transaction. So the relay
and all later steps see an ordinary commit with a recent xid, however old the producer's xid is.

If one message's transaction had committed when another message was published, the first one is
admitted first: every snapshot that has the second has the first, and calls are numbered.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row

from outbox.failpoints import hit
from outbox.messages.message import End, HalfMessage, Resolution
from outbox.messages.message_id import HalfId, Nonce
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.half_rows import COPY_HALVES, copy_data, new_half, read_message
from outbox.postgres.messages.minute_counts import count
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
BATCH_MAX: Final = 2000
BATCH_BYTES: Final = 8 << 20
"""The most bytes of values that a batch has, except for one larger value: it is in memory."""
NOTHING_SEEN: Final = "1:1:"
"""A snapshot before every transaction."""

OFF_SECONDS: Final = 5.0
"""While the mode is off, how long a process waits until it checks again."""

FULL_LOOK_SECONDS: Final = 30.0
"""How long a remembered snapshot is used: after a failover it may be of a lost history."""


class PostgresSqlOutbox:
    """Admits published messages; any number of processes may run it, one at a time admits."""

    def __init__(self, pool: Pool, *, batch_max: int = BATCH_MAX) -> None:
        self._pool = pool
        self._batch_max = batch_max
        self._off_until = 0.0
        self._seen = NOTHING_SEEN
        self._floor = 0
        """The number of the last call that is admitted and that ``_seen`` has seen."""
        self._seen_until = 0.0

    async def admit(self) -> int | None:
        """Admit every message that has committed before this call; return how many.

        None means that the mode is off. Raises DatabaseUnavailable; nothing is lost then.
        """
        now = monotonic()
        if now < self._off_until:
            return None
        if now >= self._seen_until:
            self._seen, self._floor = NOTHING_SEEN, 0
            self._seen_until = now + FULL_LOOK_SECONDS
        async with lent(self._pool) as connection:
            return await self._admit(connection, now)

    async def _admit(self, connection: AsyncConnection, now: float) -> int | None:
        """Admit messages that only the new snapshot has seen, and remember it."""
        seen = {"seen": self._seen, "floor": self._floor}
        cursor = await connection.execute(SQL["look"], seen)
        ((is_on, snapshot, waits),) = await cursor.fetchall()
        if not is_on:
            self._off_until = now + OFF_SECONDS
            return None
        admitted, last = 0, 0
        asked = {**seen, "upto": snapshot, "most": self._batch_max, "bytes": BATCH_BYTES}
        while waits:
            rows = await _admit_batch(connection, {**asked, "after": last})
            admitted += len(rows)
            last = rows[-1]["place"] if rows else last
            waits = len(rows) == self._batch_max or any(row["cut_off"] for row in rows[:1])
        self._seen, self._floor = snapshot, max(self._floor, last)
        return admitted


async def _admit_batch(
    connection: AsyncConnection, asked: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Admit one batch in one transaction: first the lock, then the rows and the xid.

    Returns the rows in the order of their calls. A transaction id that is taken stays with the
    message that has it.
    """
    async with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["lock"])
        await cursor.execute(SQL["take"], asked)
        rows = await cursor.fetchall()
        halves = [_half(row) for row in rows]
        if halves:
            hit("plain.after_take")
            async with connection.cursor() as writer, writer.copy(COPY_HALVES) as copy:
                await copy.write(copy_data(halves))
            ends = [
                End(half_id=half.half_id, nonce=half.nonce, decision=Resolution.COMMIT)
                for half in halves
            ]
            await decide(connection, ends)
            groups = [half.message.producer_group_id for half in halves]
            await count(connection, groups, "prepared", "committed")
            hit("plain.before_commit")
    if halves:
        hit("plain.after_commit")
    return rows


def _half(row: Mapping[str, Any]) -> HalfMessage:
    half_id, nonce = HalfId(row["half_id"]), Nonce(row["nonce"])
    return new_half(read_message(row), half_id, nonce, row["published_at"])
