"""Removes whole leaves (partitions) in which nothing is open: TRUNCATE, then DETACH and DROP.

A parked, held or undecided message keeps its leaf. PostgreSQL refuses DETACH … CONCURRENTLY if a
default leaf exists. So a plain detach takes its lock for an instant and waits for it at most
``LOCK_WAIT``. It shares its transaction with the drop, so no leaf stays detached but not dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as pg
from psycopg import sql

from outbox.failpoints import hit
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
LOCK_WAIT: Final = "SET LOCAL lock_timeout = '50ms'"
"""How long a removal waits for a lock, and so the longest time that it delays a prepare."""
TABLES: Final = ("check_attempt", "publication_log", "commit_log", "op_message", "half_message")
"""In the order of removal: without its half messages, a leaf no longer exists."""
LEAF_BITS: Final = 20
HALF_BITS: Final = 15
SLICES: Final = 64
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
            "low": low << HALF_BITS,
            "high": high << HALF_BITS,
        }

    def slices(self) -> list[dict[str, int]]:
        width = 1 << (LEAF_BITS + HALF_BITS)
        first, step = self.leaf * width, width // SLICES
        return [{"low": at, "high": at + step} for at in range(first, first + width, step)]


class PostgresRetirement:
    """The Retirement on a pool of connections."""

    def __init__(self, pool: Pool, *, retention_seconds: int, hold_seconds: int) -> None:
        self._pool = pool
        self._times = {"retention": retention_seconds, "hold": hold_seconds}

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first; see Retirement."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["leaves"])
            return [int(row[0]) for row in await cursor.fetchall()]

    async def waits_for(self, leaf: int) -> str | None:
        """Return what a leaf still waits for, or None; see Retirement."""
        bounds = _Bounds(leaf)
        (reason,) = await self._row("blocked_by", bounds.whole() | self._times)
        if reason is not None:
            return str(reason)
        last_xid = 0
        for part in bounds.slices():
            undecided, young, xid = await self._row("slice", part | self._times)
            if undecided or young:
                return "undecided" if undecided else "young"
            last_xid = max(last_xid, xid)
        last = {"last_xid": last_xid}
        (reason,) = await self._row("readers", bounds.whole() | self._times | last)
        return None if reason is None else str(reason)

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf in separate steps, each repeatable; see Retirement."""
        async with available():
            try:
                await self._free_transaction_ids(leaf)
                await self._truncate(leaf)
                for table in TABLES:
                    await self._drop(table, leaf)
                    hit("retire.after_detach")
            except pg.LockNotAvailable:
                return False
        return True

    async def _free_transaction_ids(self, leaf: int) -> None:
        for part in _Bounds(leaf).slices():
            async with self._pool.connection() as connection:
                await connection.execute(SQL["free_transaction_ids"], part)

    async def _truncate(self, leaf: int) -> None:
        """Empty the existing tables of the leaf, and its rows in small tables, in one commit."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(LOCK_WAIT)
            names = [name for name in TABLES if await _exists(connection, name, leaf)]
            tables = sql.SQL(", ").join(_table(name, leaf) for name in names)
            await connection.execute(sql.SQL("TRUNCATE {}").format(tables))
            for name in _FORGET:
                await connection.execute(SQL[name], _Bounds(leaf).whole())
            hit("retire.before_truncate")
        hit("retire.after_truncate")

    async def _drop(self, table: str, leaf: int) -> None:
        async with self._pool.connection() as connection, connection.transaction():
            if not await _exists(connection, table, leaf):
                return
            await connection.execute(LOCK_WAIT)
            detach = sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(
                sql.Identifier("outbox", table), _table(table, leaf)
            )
            await connection.execute(detach)
            await connection.execute(sql.SQL("DROP TABLE {}").format(_table(table, leaf)))

    async def _row(self, statement: str, parameters: dict[str, int]) -> tuple[Any, ...]:
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL[statement], parameters)
            row = await cursor.fetchone()
        assert row is not None
        return tuple(row)


def _table(table: str, leaf: int) -> sql.Identifier:
    return sql.Identifier("outbox", f"{table}_{leaf}")


async def _exists(connection: Any, table: str, leaf: int) -> bool:
    cursor = await connection.execute(SQL["exists"], {"table": f"outbox.{table}_{leaf}"})
    row = await cursor.fetchone()
    return bool(row and row[0])
