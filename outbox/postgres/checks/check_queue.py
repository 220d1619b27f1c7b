"""The check queue: due rows are read by cursor, and a round is settled in one transaction.

Reading takes no locks, so that no database transaction is open during a check call. The
compare-and-set of the cursors in ``settle`` ensures that a round takes effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from psycopg import AsyncCursor
from psycopg.rows import dict_row, kwargs_row

from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.check_round import DueSlice, GroupDue, Settled, Settlement
from outbox.checks.policy import ClockDoubt, Decision, Park, decide
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import Drop, QueueRow
from outbox.errors import ConfigurationError
from outbox.messages.message_id import HalfId
from outbox.postgres.checks.keyring import valid_secrets
from outbox.postgres.checks.settlement import settle
from outbox.postgres.messages.half_rows import read_if_whole
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.key_order import read_in_key_order
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
PAYLOAD_ROWS: Final = 32
"""The most rows of a slice whose group wants the values: a value may have a megabyte."""
PARKED_BYTES: Final = 8 << 20
"""The most bytes of values that a slice parks, except for one larger: the round copies them in one
transaction, and until that ends no relay publishes what was committed after it began."""


class PostgresCheckQueue:
    """The CheckQueue on a pool; ``decrypt`` opens a stored signing secret of a named group."""

    def __init__(self, pool: Pool, decrypt: Callable[[bytes, str], str]) -> None:
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

    async def aged_groups(self) -> Mapping[int, str]:
        """Return the groups with halves at their max age; see CheckQueue.aged_groups."""
        async with available(), self._pool.connection() as connection:
            await connection.execute(SQL["note_clock"])
            return await self._aged_groups(connection)

    async def _aged_groups(self, connection: AsyncConnection) -> Mapping[int, str]:
        async with connection.transaction():
            await read_in_key_order(connection)
            cursor = await connection.execute(SQL["aged_groups"])
            return dict(await cursor.fetchall())

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read the due rows of a group; see CheckQueue.claim."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await read_in_key_order(connection)
            row = await _read_group(connection, producer_group_id)
            if row is None:
                return None
            group = read_group(row, ())
            limit = min(limit, PAYLOAD_ROWS) if group.check_payload else limit
            due = await _read_slice(connection, group, row, limit)
            return due and replace(self._with_secrets(due, row), breaker=_breaker(row))

    async def settle(self, settlement: Settlement) -> Settled:
        """Write a round's results, all or nothing; see CheckQueue.settle."""
        async with available(), self._pool.connection() as connection:
            return await settle(connection, settlement)

    def _with_secrets(self, due: DueSlice, row: Mapping[str, Any]) -> DueSlice:
        """Add the signing secrets; halves at their max age need none, and are parked without.

        Raises ConfigurationError if the secret cannot be read and there are only halves to ask
        about.
        """
        if not due.rows:
            return due
        try:
            secrets = valid_secrets(
                self._decrypt, row["secret"], row["previous_secrets"], due.group.name
            )
        except ConfigurationError:
            if not due.aged:
                raise
            return replace(due, rows=(), more=False)
        return replace(due, group=replace(due.group, secrets=secrets))


async def _read_group(
    connection: AsyncConnection, producer_group_id: int
) -> Mapping[str, Any] | None:
    """Read a group's row: the settings, the breaker, whether the group rests, the time."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["group"], {"group": producer_group_id})
        return await cursor.fetchone()


def _breaker(row: Mapping[str, Any]) -> Breaker | None:
    if row["probe_at"] is None:
        return None
    return Breaker(wait_seconds=row["wait_seconds"], probe_at=row["probe_at"])


def _due(**row: Any) -> GroupDue:
    return GroupDue(**{**row, "breaker": BreakerState(row["breaker"])})


_group_due: Final = kwargs_row(_due)


async def _read_slice(
    connection: AsyncConnection, group: ProducerGroup, found: Mapping[str, Any], limit: int
) -> DueSlice | None:
    """Read the rows at their max age and, unless the group rests, the due rows."""
    now: datetime = found["now"]
    doubt = ClockDoubt(
        skipped=timedelta(seconds=found["skipped_seconds"]), stepped_at=found["stepped_at"]
    )
    max_age = group.max_age_seconds + found["skipped_seconds"]
    async with connection.cursor(row_factory=dict_row) as cursor:
        asked = {"group": group.id, "now": now, "limit": limit}
        asked |= {"max_age": max_age, "stepped_at": doubt.stepped_at}
        await cursor.execute(SQL["aged_rows"], asked)
        aged = await cursor.fetchall()
        waiting: Sequence[Mapping[str, Any]] = ()
        if not found["rests"]:
            await cursor.execute(SQL["due_rows"], asked)
            waiting = in_due_order(await cursor.fetchall())
        due = waiting[:limit]
        if not (due or aged):
            return None
        halves = await _read_halves(cursor, [*due, *aged], with_value=group.check_payload)
    rows, old = (
        _rows_to_settle(each, halves, lambda row: decide(row, group, now, doubt))
        for each in (due, aged)
    )
    return DueSlice(
        group=group,
        now=now,
        doubt=doubt,
        cursors={row["delay_seconds"]: row["position"] for row in (*due, *aged)},
        rows=rows,
        aged=old,
        more=len(waiting) >= limit or len(rows) < len(due),
        more_aged=len(aged) >= limit or len(old) < len(aged),
        server_started_at=found["server_started_at"],
    )


async def _read_halves(
    cursor: AsyncCursor[dict[str, Any]], rows: Sequence[Mapping[str, Any]], *, with_value: bool
) -> dict[int, Mapping[str, Any]]:
    half_ids = sorted({row["half_id"] for row in rows})
    bounds = {"low": half_ids[0], "high": half_ids[-1]}
    asked = {"half_ids": half_ids, "with_value": with_value, **bounds}
    await cursor.execute(SQL["claimed_halves"], asked)
    return {row["half_id"]: row for row in await cursor.fetchall()}


def _rows_to_settle(
    read: Sequence[Mapping[str, Any]],
    halves: Mapping[int, Mapping[str, Any]],
    decided: Callable[[QueueRow], Decision],
) -> tuple[QueueRow, ...]:
    """Return the first rows; of those that are parked as many as PARKED_BYTES allow, or one."""
    rows = [_queue_row(row, halves[row["half_id"]]) for row in read]
    copied = (
        (halves[row.half_id]["value_bytes"] or 0)
        if row.drop is None and isinstance(decided(row), Park)
        else 0
        for row in rows
    )
    before = accumulate(copied, initial=0)
    return tuple(row for row, parked in zip(rows, before, strict=False) if parked < PARKED_BYTES)


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
        nonce=found["nonce"],
        half=None if drop else read_if_whole(found),
        drop=drop,
        parked=found["parked"],
    )


def _drop(row: Mapping[str, Any], found: Mapping[str, Any]) -> Drop | None:
    if not found["stored"]:
        return Drop.UNKNOWN
    if found["decided"]:
        return Drop.DECIDED
    void = row.get("passed", False) or row["round"] < found["standing_round"]
    return Drop.VOID if void else None
