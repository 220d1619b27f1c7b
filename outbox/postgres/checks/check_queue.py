"""The check queue: due rows are read by cursor, and a round is settled in one transaction.

Reading takes no locks, so that no database transaction is open while a producer is asked. What
makes a round happen once is the compare-and-set of the cursors in ``settle``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row, kwargs_row

from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.check_round import Drop, DueSlice, GroupDue, QueueRow, Settled, Settlement
from outbox.checks.policy import Waiting
from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.checks.settlement import settle
from outbox.postgres.messages.half_rows import read_half
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load("outbox.postgres.checks.check_queue")
PAYLOAD_ROWS: Final = 32
"""A slice of a group that wants the values is this short: a value may be a megabyte."""

_COPIED: Final = (
    "id",
    "name",
    "check_url",
    "check_interval_seconds",
    "check_max",
    "check_timeout_seconds",
    "transaction_timeout_seconds",
    "max_inflight",
    "batch_check",
    "check_payload",
    "max_age_seconds",
    "paused",
    "pause_reason",
    "version",
    "created_at",
    "updated_at",
)


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
            await cursor.execute(SQL["in_key_order"])
            await cursor.execute(SQL["due_groups"])
            return await cursor.fetchall()

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read the due rows of a group; see CheckQueue.claim."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await connection.execute(SQL["in_key_order"])
            read = await self._read_group(connection, producer_group_id)
            if read is None:
                return None
            group, breaker, now = read
            limit = min(limit, PAYLOAD_ROWS) if group.check_payload else limit
            due = await _read_slice(connection, group, now, limit)
            return due and replace(due, breaker=breaker)

    async def settle(self, settlement: Settlement) -> Settled:
        """Write a round's findings, all or nothing; see CheckQueue.settle."""
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


def _breaker(row: Mapping[str, Any]) -> Breaker | None:
    if row["probe_at"] is None:
        return None
    return Breaker(wait_seconds=row["wait_seconds"], probe_at=row["probe_at"])


def _due(**row: Any) -> GroupDue:
    return GroupDue(**{**row, "breaker": BreakerState(row["breaker"])})


_group_due: Final = kwargs_row(_due)


def read_group(row: Mapping[str, Any], secrets: tuple[str, ...]) -> ProducerGroup:
    """Build a producer group from its row; its secrets come decrypted."""
    return ProducerGroup(
        **{name: row[name] for name in _COPIED},
        on_check_max=OnCheckMax(row["on_check_max"]),
        backoff=Backoff(row["backoff"]),
        topics=tuple(row["topics"]),
        breaker=BreakerState(row.get("breaker", BreakerState.CLOSED)),
        secrets=secrets,
    )


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
    """Merge the classes by due time without changing the order inside a class.

    Inside a class the cursor passes rows by id, so a row stands no earlier than those before it,
    even where their due times differ by a moment.
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
        waiting=Waiting(
            check_count=row["check_count"],
            only_unknown=row["only_unknown"],
            age_from=row["age_from"],
            due_at=row["due_at"],
        ),
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
    """Build the half, or None when its stored form is broken: it must delay no other (D10)."""
    try:
        return read_half(found)
    except (ValueError, TypeError, KeyError):
        return None
