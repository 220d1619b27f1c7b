"""Removes whole leaves (partitions) that nothing waits for: DETACH, then DROP.

Messages that are not finished (undecided, parked, held, given up) move to the default leaf in the
same transaction, where every reader of the table finds them. Ages are PostgreSQL's. What a relay or
an audit has still to read is not removed, however old it is.

PostgreSQL refuses DETACH … CONCURRENTLY if a default leaf exists. So a plain detach takes its locks
for an instant, waits for each at most ``LOCK_WAIT``, and does nothing while an audit may still read
the leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as pg

from outbox.failpoints import hit
from outbox.messages.message_id import LEAF_BITS, LOW_BITS
from outbox.postgres.sessions.availability import available, lent
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
LOCK_WAIT: Final = "SET LOCAL lock_timeout = '50ms'; SET LOCAL statement_timeout = '1s'"
"""How long a removal waits for a lock, and so delays a prepare, and how long it may move rows."""
EVACUATED_MOST: Final = 1000
"""A leaf with more unfinished messages waits: to move them would keep every prepare waiting."""
TABLES: Final = ("check_attempt", "publication_log", "commit_log", "op_message", "half_message")
"""In the order of removal: without its half messages, a leaf no longer exists."""
SLICES: Final = 64
"""A transaction that deletes by key deletes of this part of a leaf: it holds the watermark back."""


class PostgresRetirement:
    """The Retirement on a pool of connections."""

    def __init__(self, pool: Pool, *, retention_seconds: int) -> None:
        self._pool = pool
        self._retention = {"retention": retention_seconds}
        self._young_from: datetime | None = None
        """The retention of what came later was not over at the last look at a leaf."""

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first; see Retirement."""
        return await self._column("leaves", {})

    async def waits_for(self, leaf: int) -> str | None:
        """Return what a leaf still waits for, or None; see Retirement."""
        (self._young_from,) = await self._column("young_from", self._retention)
        if not await self._attached(leaf):
            return None
        (reason,) = await self._column("blocked_by", self._bounds(leaf) | {"most": EVACUATED_MOST})
        return None if reason is None else str(reason)

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf in separate steps, each repeatable; see Retirement."""
        async with available():
            try:
                if detached := await self._detach(leaf):
                    await self._drop(leaf)
            except (pg.LockNotAvailable, pg.QueryCanceled):
                return False
        return detached

    async def forget_finished(self) -> None:
        """Delete evacuated messages that have ended for good; see Retirement."""
        async with lent(self._pool) as connection:
            await connection.execute(SQL["forget_finished"], self._retention)
            await connection.execute(SQL["forget_places"], self._retention)

    async def _detach(self, leaf: int) -> bool:
        """Detach the tables of a leaf and keep what is unfinished; False while an audit runs.

        A half that was decided since the leaf was looked at counts as unfinished.
        """
        if not await self._attached(leaf):
            return True
        bounds = self._bounds(leaf)
        (since,) = await self._column("watermark", {})
        unfinished = await self._column("unfinished", bounds)
        await self._free_ids(leaf, unfinished)
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(LOCK_WAIT)
            if await _fetch(connection, "no_audit", {}) != [True]:
                return False
            await connection.execute(SQL["lock_tables"])
            late = await _fetch(connection, "unfinished_since", bounds | {"since": since})
            kept = {"kept": [*unfinished, *late]}
            await connection.execute(SQL["detach"], {"leaf": leaf} | kept)
            await connection.execute(SQL["forget"], bounds | kept)
            hit("retire.before_detach")
        hit("retire.after_detach")
        return True

    async def _free_ids(self, leaf: int, unfinished: list[int]) -> None:
        """Forget the transaction ids and recovered ids of a leaf, but for unfinished messages."""
        low, high = _half_ids(leaf)
        step = (high - low) // SLICES
        async with self._pool.connection() as connection:
            for at in range(low, high, step):
                part = {"low": at, "high": at + step, "kept": unfinished}
                await connection.execute(SQL["free_ids"], part)

    async def _drop(self, leaf: int) -> None:
        """Drop the detached tables of a leaf; nobody but an old plan can still use one."""
        for table in TABLES:
            async with self._pool.connection() as connection, connection.transaction():
                await connection.execute(LOCK_WAIT)
                await connection.execute(SQL["drop"], {"table": table, "leaf": leaf})
            hit("retire.after_drop")

    async def _attached(self, leaf: int) -> bool:
        """Return whether any of the partitioned tables still has this leaf."""
        tables = [f"{table}_{leaf}" for table in TABLES]
        return bool(await self._column("attached", {"tables": tables}))

    def _bounds(self, leaf: int) -> dict[str, Any]:
        """Return a leaf's xids and half ids, without the upper bounds, and the time of the look."""
        low, high = _half_ids(leaf)
        xids = {"from_xid": low >> LOW_BITS, "to_xid": high >> LOW_BITS}
        return {**xids, "low": low, "high": high, "young_from": self._young_from}

    async def _column(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        async with lent(self._pool) as connection:
            return await _fetch(connection, statement, parameters)


def _half_ids(leaf: int) -> tuple[int, int]:
    """Return the first half id of a leaf and that of the next leaf."""
    return leaf << (LEAF_BITS + LOW_BITS), (leaf + 1) << (LEAF_BITS + LOW_BITS)


async def _fetch(connection: Any, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
    cursor = await connection.execute(SQL[statement], parameters)
    return [row[0] for row in await cursor.fetchall()]
