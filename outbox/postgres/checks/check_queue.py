"""The check queue: due rows are read by cursor, and a round is settled in one transaction.

Reading takes no locks, so that no database transaction is open during a check call. The
compare-and-set of the cursors in ``settle`` ensures that a round takes effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.check_round import Drop, DueSlice, GroupDue, QueueRow, Settled, Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.errors import ConfigurationError
from outbox.messages.message_id import HalfId
from outbox.postgres.checks.keyring import valid_secrets
from outbox.postgres.checks.settlement import settle
from outbox.postgres.messages.half_rows import read_if_whole
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
PAYLOAD_ROWS: Final = 16
"""The most rows of a slice whose group wants the values: a value may have a megabyte."""


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
        ):
            await read_in_key_order(connection)
            rows = await rows_of(connection, SQL["due_groups"], {})
        return [GroupDue(**{**row, "breaker": BreakerState(row["breaker"])}) for row in rows]

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
            group, unreadable, breaker = read_group(row, ()), None, _breaker(row)
            is_open = breaker is not None and breaker.state(row["now"]) is BreakerState.OPEN
            asks = not (row["rests"] or is_open)
            if asks:
                try:
                    group = replace(group, secrets=valid_secrets(self._decrypt, row, group.name))
                except ConfigurationError as error:
                    asks, unreadable = False, error
            due = await _read_slice(connection, group, row, limit, asks=asks)
            if due is None and unreadable is not None:
                raise unreadable
            return due

    async def settle(self, settlement: Settlement) -> Settled:
        """Write a round's results, all or nothing; see CheckQueue.settle."""
        async with available(), self._pool.connection() as connection:
            return await settle(connection, settlement)


async def _read_group(
    connection: AsyncConnection, producer_group_id: int
) -> Mapping[str, Any] | None:
    """Read a group's row: the settings, the breaker, whether the group rests, the time."""
    rows = await rows_of(connection, SQL["group"], {"group": producer_group_id})
    return rows[0] if rows else None


def _breaker(row: Mapping[str, Any]) -> Breaker | None:
    if row["probe_at"] is None:
        return None
    return Breaker(wait_seconds=row["wait_seconds"], probe_at=row["probe_at"])


async def _read_slice(
    connection: AsyncConnection,
    group: ProducerGroup,
    found: Mapping[str, Any],
    limit: int,
    *,
    asks: bool,
) -> DueSlice | None:
    """Read the due rows; those at their max age only, while the group cannot be asked."""
    limit = min(limit, PAYLOAD_ROWS) if group.check_payload else limit
    asked = {"group": group.id, "now": found["now"], "limit": limit, "asks": asks}
    due = await rows_of(connection, SQL["due_rows"], {**asked, "max_age": group.max_age_seconds})
    if not due:
        return None
    halves = await _read_halves(connection, due, with_value=group.check_payload)
    return DueSlice(
        group=group,
        now=found["now"],
        cursors={row["delay_seconds"]: row["position"] for row in due},
        rows=tuple(_queue_row(row, halves[row["id"]]) for row in due),
        asks=asks,
        more=len(due) >= limit,
        breaker=_breaker(found),
        server_started_at=found["server_started_at"],
    )


async def _read_halves(
    connection: AsyncConnection, rows: Sequence[Mapping[str, Any]], *, with_value: bool
) -> dict[int, Mapping[str, Any]]:
    half_ids = [row["half_id"] for row in rows]
    asked = {
        "half_ids": half_ids,
        "ids": [row["id"] for row in rows],
        "rounds": [row["round"] for row in rows],
        "with_value": with_value,
        "low": min(half_ids),
        "high": max(half_ids),
    }
    found = await rows_of(connection, SQL["claimed_halves"], asked)
    return {row["look_id"]: row for row in found}


def _queue_row(row: Mapping[str, Any], found: Mapping[str, Any]) -> QueueRow:
    drop = found["drop"] and Drop(found["drop"])
    return QueueRow(
        look_id=row["id"],
        delay_seconds=row["delay_seconds"],
        half_id=HalfId(row["half_id"]),
        round=row["round"],
        check_count=row["check_count"],
        only_unknown=row["only_unknown"],
        age_from=row["age_from"],
        nonce=found["nonce"],
        half=None if drop else read_if_whole(found),
        drop=drop,
        parked=found["parked"],
    )
