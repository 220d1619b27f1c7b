"""The check queue: due rows are read by cursor, and a round is settled in one transaction.

Reading takes no locks, so that no database transaction is open during a check call. The
compare-and-set of the cursors in ``settle`` ensures that a round takes effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert

from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.check_round import Drop, DueSlice, GroupDue, QueueRow, Settled, Settlement
from outbox.postgres.checks.keyring import valid_secrets
from outbox.postgres.checks.settlement import settle
from outbox.postgres.messages.half_rows import bounds, read_if_whole
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import lent, transaction
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
        async with transaction(self._pool) as connection:
            await read_in_key_order(connection)
            rows = await rows_of(connection, SQL["due_groups"], {})
        return convert(rows, list[GroupDue])

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read the due rows of a group; see CheckQueue.claim."""
        async with transaction(self._pool) as connection:
            await read_in_key_order(connection)
            [found] = await rows_of(connection, SQL["group"], {"group": producer_group_id})
            group, breaker = read_group(found), None
            if found["probe_at"] is not None:
                breaker = Breaker(wait_seconds=found["wait_seconds"], probe_at=found["probe_at"])
            is_open = breaker is not None and breaker.state(found["now"]) is BreakerState.OPEN
            asks = not (found["rests"] or is_open)
            if asks:
                group = replace(group, secrets=valid_secrets(self._decrypt, found, group.name))
            limit = min(limit, PAYLOAD_ROWS) if group.check_payload else limit
            asked = {"group": group.id, "now": found["now"], "limit": limit, "asks": asks}
            asked["max_age"] = group.max_age_seconds
            due = await rows_of(connection, SQL["due_rows"], asked)
            if not due:
                return None
            cursors = {row["delay_seconds"]: row.pop("position") for row in due}
            return DueSlice(
                group=group,
                now=found["now"],
                cursors=cursors,
                rows=await _read_rows(connection, due, with_value=group.check_payload),
                asks=asks,
                more=len(due) >= limit,
                breaker=breaker,
                server_started_at=found["server_started_at"],
            )

    async def settle(self, settlement: Settlement) -> Settled:
        """Write a round's results, all or nothing; see CheckQueue.settle."""
        async with lent(self._pool) as connection:
            return await settle(connection, settlement)


async def _read_rows(
    connection: AsyncConnection, due: Sequence[Mapping[str, Any]], *, with_value: bool
) -> tuple[QueueRow, ...]:
    """Read the halves of the due rows, and why a row is dropped."""
    half_ids = [row["half_id"] for row in due]
    asked = {
        "half_ids": half_ids,
        "look_ids": [row["look_id"] for row in due],
        "rounds": [row["round"] for row in due],
        "with_value": with_value,
        **bounds(half_ids),
    }
    rows = await rows_of(connection, SQL["claimed_halves"], asked)
    halves = {row["look_id"]: row for row in rows}
    return tuple(_queue_row(row, halves[row["look_id"]]) for row in due)


def _queue_row(row: Mapping[str, Any], found: Mapping[str, Any]) -> QueueRow:
    drop = found["drop"] and Drop(found["drop"])
    half = None if drop else read_if_whole(found)
    return QueueRow(**row, nonce=found["nonce"], half=half, drop=drop)
