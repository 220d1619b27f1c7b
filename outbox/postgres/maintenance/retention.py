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
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as pg

from outbox.clock import Clock, SystemClock
from outbox.failpoints import hit
from outbox.messages.message_id import LEAF_BITS, LOW_BITS
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
LOCK_WAIT: Final = "SET LOCAL lock_timeout = '50ms'; SET LOCAL statement_timeout = '1s'"
"""How long a removal waits for a lock, and so delays a prepare, and how long it may move rows."""
EVACUATED_MOST: Final = 1000
"""A leaf with more unfinished messages waits: to move them would keep every prepare waiting."""
LOOKED_AT: Final = 1000
"""How many evacuated messages are looked at each minute."""
BEFORE_ALL: Final = -(1 << 63)
"""Below the id of every half."""
TOO_LONG_SECONDS: Final = 3600.0
"""So does one, for this time, whose unfinished messages took longer to move than LOCK_WAIT
allows."""
TABLES: Final = ("check_attempt", "publication_log", "commit_log", "op_message", "half_message")
"""In the order of removal: without its half messages, a leaf no longer exists."""
SLICES: Final = 64
_FREE: Final = ("free_transaction_ids", "forget_recovered")
_FORGET: Final = ("forget_parked", "forget_rechecks", "forget_released")


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The xids (base included) and the half ids of a leaf; the upper bounds are exclusive."""

    leaf: int

    def whole(self) -> dict[str, int]:
        low, high = self.leaf << LEAF_BITS, (self.leaf + 1) << LEAF_BITS
        return {
            "from_xid": low,
            "to_xid": high,
            "low": low << LOW_BITS,
            "high": high << LOW_BITS,
        }

    def slices(self) -> list[dict[str, int]]:
        width = 1 << (LEAF_BITS + LOW_BITS)
        first, step = self.leaf * width, width // SLICES
        return [{"low": at, "high": at + step} for at in range(first, first + width, step)]


class PostgresRetirement:
    """The Retirement on a pool of connections."""

    def __init__(self, pool: Pool, *, retention_seconds: int, clock: Clock | None = None) -> None:
        self._pool = pool
        self._retention = {"retention": retention_seconds}
        self._looked: dict[str, datetime] | None = None
        self._clock = clock or SystemClock()
        self._too_long: dict[int, float] = {}
        """Until when each leaf waits whose removal took too long."""
        self._looked_at = BEFORE_ALL
        """The last evacuated half that was looked at."""

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first; see Retirement."""
        await self._look()
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["leaves"])
            return [int(row[0]) for row in await cursor.fetchall()]

    async def _look(self) -> dict[str, datetime]:
        """Read since when the retention is not over; it counts until the next look."""
        (young_from,) = await self._row("young_from", self._retention)
        self._looked = {"young_from": young_from}
        return self._looked

    async def _times(self) -> dict[str, datetime]:
        return self._looked or await self._look()

    async def waits_for(self, leaf: int) -> str | None:
        """Return what a leaf still waits for, or None; see Retirement."""
        bounds, times = _Bounds(leaf), await self._times()
        if not await self._attached(leaf):
            return None
        if self._clock.monotonic() < self._too_long.get(leaf, 0.0):
            return "large"
        most = {"most": EVACUATED_MOST}
        (reason,) = await self._row("blocked_by", bounds.whole() | times | most)
        if reason is not None:
            return str(reason)
        last_xid, undecided = 0, 0
        for part in bounds.slices():
            count, young, xid = await self._row("slice", part | times)
            undecided += count
            if young or undecided > EVACUATED_MOST:
                return "young" if young else "undecided"
            last_xid = max(last_xid, xid)
        last = {"last_xid": last_xid}
        (reason,) = await self._row("readers", bounds.whole() | times | last)
        return None if reason is None else str(reason)

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf in separate steps, each repeatable; see Retirement."""
        async with available():
            try:
                return await self._detach(leaf) and await self._drop(leaf)
            except pg.LockNotAvailable:
                return False
            except pg.QueryCanceled:
                self._too_long[leaf] = self._clock.monotonic() + TOO_LONG_SECONDS
                return False

    async def forget_finished(self) -> None:
        """Delete evacuated messages that have ended for good; see Retirement."""
        times = await self._times()
        async with available(), self._pool.connection() as connection:
            few = {"after": self._looked_at, "most": LOOKED_AT}
            cursor = await connection.execute(SQL["forget_finished"], few | times)
            last, _ = await cursor.fetchone() or (None, None)
            self._looked_at = BEFORE_ALL if last is None else last
            await connection.execute(SQL["forget_places"], times)

    async def _detach(self, leaf: int) -> bool:
        """Detach the tables of a leaf and keep what is unfinished; False while an audit runs."""
        if not await self._attached(leaf):
            return True
        bounds = _Bounds(leaf).whole() | await self._times()
        (since,) = await self._row("watermark", {})
        undecided = await self._free_ids(leaf)
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(LOCK_WAIT)
            if await _fetch(connection, "no_audit", {}) != [True]:
                return False
            await connection.execute(SQL["lock_tables"])
            late = await _fetch(connection, "committed_since", bounds | {"since": since})
            kept = [*undecided, *late, *await _fetch(connection, "unreleased", bounds)]
            await connection.execute(SQL["detach"], {"leaf": leaf, "kept": kept})
            for name in _FORGET:
                await connection.execute(SQL[name], bounds | {"kept": kept})
            hit("retire.before_detach")
        hit("retire.after_detach")
        return True

    async def _free_ids(self, leaf: int) -> list[int]:
        """Forget a leaf's transaction ids and recovered ids; return its undecided halves.

        What belongs to these stays. A half that was decided since the leaf was looked at counts as
        undecided.
        """
        undecided, times = list[int](), await self._times()
        async with self._pool.connection() as connection:
            held = await _fetch(connection, "unreleased", _Bounds(leaf).whole() | times)
            for part in _Bounds(leaf).slices():
                found = await _fetch(connection, "undecided", part | times)
                kept = {"kept": [*found, *held]}
                for name in _FREE:
                    await connection.execute(SQL[name], part | kept)
                undecided += found
        return undecided

    async def _drop(self, leaf: int) -> bool:
        """Drop the detached tables of a leaf; nobody but an old plan can still use one."""
        for table in TABLES:
            async with self._pool.connection() as connection, connection.transaction():
                await connection.execute(LOCK_WAIT)
                await connection.execute(SQL["drop"], {"table": table, "leaf": leaf})
            hit("retire.after_drop")
        return True

    async def _attached(self, leaf: int) -> bool:
        """Return whether any of the partitioned tables still has this leaf."""
        tables = [f"{table}_{leaf}" for table in TABLES]
        async with available(), self._pool.connection() as connection:
            return bool(await _fetch(connection, "attached", {"tables": tables}))

    async def _row(self, statement: str, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL[statement], parameters)
            row = await cursor.fetchone()
        assert row is not None
        return tuple(row)


async def _fetch(connection: Any, statement: str, parameters: dict[str, Any]) -> list[Any]:
    cursor = await connection.execute(SQL[statement], parameters)
    return [row[0] for row in await cursor.fetchall()]
