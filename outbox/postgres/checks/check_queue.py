"""The check queue: due rows are read by cursor, and a round is settled in one transaction.

Reading takes no locks, so that no database transaction is open during a check call. The
compare-and-set of the cursors in ``settle`` ensures that a round takes effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row, kwargs_row

from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.check_round import DueSlice, GroupDue, Settled, Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import Drop, QueueRow
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.checks.settlement import settle
from outbox.postgres.messages.half_rows import read_half
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
PAYLOAD_ROWS: Final = 32
"""The most rows of a slice whose group wants the values: a value may have a megabyte."""


class PostgresCheckQueue:
    """The CheckQueue on a pool; ``decrypt`` turns a stored signing secret into its text."""

    def __init__(self, pool: Pool, decrypt: Callable[[bytes], str]) -> None:
        self._pool = pool
        self._decrypt = decrypt

    async def due_groups(self) -> Sequence[GroupDue]:
        """Return the groups with waiting halves; see CheckQueue.due_groups."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
            connection.cursor(row_factory=_group_due) as cursor,
        ):
            await read_in_key_order(connection)
            await cursor.execute(SQL["due_groups"])
            return await cursor.fetchall()

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read the due rows of a group; see CheckQueue.claim."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await read_in_key_order(connection)
            read = await self._read_group(connection, producer_group_id)
            if read is None:
                return None
            group, breaker, now = read
            limit = min(limit, PAYLOAD_ROWS) if group.check_payload else limit
            due = await _read_slice(connection, group, now, limit)
            return due and replace(due, breaker=breaker)

    async def settle(self, settlement: Settlement) -> Settled:
        """Write a round's results, all or nothing; see CheckQueue.settle."""
        async with available(), self._pool.connection() as connection:
            return await settle(connection, settlement)

    async def _read_group(
        self, connection: AsyncConnection, producer_group_id: int
    ) -> tuple[ProducerGroup, Breaker | None, datetime] | None:
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(SQL["group"], {"group": producer_group_id})
            row = await cursor.fetchone()
        if row is None:
            return None
        stored = [row["secret"], row["previous_secret"]]
        secrets = tuple(self._decrypt(bytes(secret)) for secret in stored if secret)
        return read_group(row, secrets), _breaker(row), row["now"]


async def read_in_key_order(connection: AsyncConnection) -> None:
    """Make the rest of the transaction read by index in key order; see the statement."""
    await connection.execute(SQL["in_key_order"])


def _breaker(row: Mapping[str, Any]) -> Breaker | None:
    if row["probe_at"] is None:
        return None
    return Breaker(wait_seconds=row["wait_seconds"], probe_at=row["probe_at"])


def _due(**row: Any) -> GroupDue:
    return GroupDue(**{**row, "breaker": BreakerState(row["breaker"])})


_group_due: Final = kwargs_row(_due)


async def _read_slice(
    connection: AsyncConnection, group: ProducerGroup, now: datetime, limit: int
) -> DueSlice | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["due_rows"], {"group": group.id, "now": now, "limit": limit})
        found = in_due_order(await cursor.fetchall())
        due = found[:limit]
        if not due:
            return None
        half_ids = sorted({row["half_id"] for row in due})
        bounds = {"low": half_ids[0], "high": half_ids[-1]}
        await cursor.execute(
            SQL["claimed_halves"],
            {"half_ids": half_ids, "with_value": group.check_payload, **bounds},
        )
        halves = {row["half_id"]: row for row in await cursor.fetchall()}
    return DueSlice(
        group=group,
        now=now,
        cursors={row["delay_seconds"]: row["position"] for row in due},
        rows=tuple(_queue_row(row, halves[row["half_id"]]) for row in due),
        more=len(found) >= limit,
    )


def in_due_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Merge the delay classes by due time, and keep the order inside a class.

    Inside a class the cursor passes rows by id. So a row comes after the rows of lower ids, even if
    its due time is slightly earlier than theirs.
    """
    latest: dict[int, datetime] = {}
    ranked = []
    for row in rows:
        delay = row["delay_seconds"]
        latest[delay] = max(row["due_at"], latest.get(delay, row["due_at"]))
        ranked.append((latest[delay], row))
    return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]


def _queue_row(row: Mapping[str, Any], found: Mapping[str, Any]) -> QueueRow:
    drop = _drop(row, found)
    return QueueRow(
        look_id=row["id"],
        delay_seconds=row["delay_seconds"],
        half_id=HalfId(row["half_id"]),
        round=row["round"],
        check_count=row["check_count"],
        only_unknown=row["only_unknown"],
        age_from=row["age_from"],
        due_at=row["due_at"],
        half=None if drop else _readable(found),
        drop=drop,
        parked=found["parked"],
    )


def _drop(row: Mapping[str, Any], found: Mapping[str, Any]) -> Drop | None:
    if not found["stored"]:
        return Drop.UNKNOWN
    if found["decided"]:
        return Drop.DECIDED
    return Drop.VOID if row["round"] < found["standing_round"] else None


def _readable(found: Mapping[str, Any]) -> HalfMessage | None:
    """Build the half, or None if its stored form is broken: it must not delay others (D10)."""
    try:
        return read_half(found)
    except (ValueError, TypeError, KeyError):
        return None
