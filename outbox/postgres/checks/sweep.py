"""The sweep: each undecided half is put into the check queue once, cursor and rows in one commit.

The sweep is a range anti-join of half and op messages over a bounded slice of ids. It never passes
the watermark and never reads halves of the last second. Nothing is scanned twice.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from outbox.checks.check_round import SweepRound
from outbox.checks.policy import class_of_first_check
from outbox.errors import CursorMoved
from outbox.failpoints import hit
from outbox.postgres.checks.settlement import open_classes
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import read_in_key_order
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
YOUNGEST: Final = timedelta(seconds=1)
"""Halves younger than this are left for the next sweep; the shortest immunity is equally long."""
DictCursor = psycopg.AsyncCursor[dict[str, Any]]


class _Undecided(NamedTuple):
    """A half without an op message, with the present immunity of its check."""

    half_id: int
    producer_group_id: int
    prepared_at: datetime
    immunity_seconds: int
    groups_immunity_seconds: int | None
    """The immunity, if it is the group's."""


class PostgresSweep:
    """The Sweep on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def sweep(self, limit: int) -> SweepRound:
        """Queue the undecided among the next ``limit`` halves; see Sweep.sweep."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await read_in_key_order(connection)
            async with connection.cursor(row_factory=dict_row) as cursor:
                start = await _one(cursor, "position", {})
                young = {"young": start["now"] - YOUNGEST, "limit": limit}
                part = start | await _one(cursor, "slice", start | young)
            if not part["looked"]:
                return SweepRound(looked=0, queued=0)
            found = await _undecided(connection, part)
            await _queue(connection, part, found)
            hit("sweep.before_commit")
        hit("sweep.after_commit")
        return SweepRound(looked=part["looked"], queued=len(found))


async def _one(cursor: DictCursor, statement: str, asked: dict[str, Any]) -> dict[str, Any]:
    await cursor.execute(SQL[statement], asked)
    [row] = await cursor.fetchall()
    return row


async def _undecided(connection: AsyncConnection, part: dict[str, Any]) -> list[_Undecided]:
    cursor = await connection.execute(SQL["undecided"], part)
    return list(map(_Undecided._make, await cursor.fetchall()))


async def _queue(
    connection: AsyncConnection, part: dict[str, Any], found: list[_Undecided]
) -> None:
    """Move the cursor and append the halves. Raises CursorMoved when another sweep was faster."""
    async with connection.cursor() as cursor:
        await cursor.execute(SQL["move"], part)
        if cursor.rowcount != 1:
            raise CursorMoved
        if found:
            queued = [_first_check(half, part["now"]) for half in found]
            await open_classes(cursor, {(each["group_id"], each["delay"]) for each in queued})
            await cursor.execute(SQL["queue"], {"queued": Jsonb(queued)})


def _first_check(half: _Undecided, now: datetime) -> dict[str, Any]:
    """Return the row of the queue for a half: due when its immunity ends."""
    due_at = half.prepared_at + timedelta(seconds=half.immunity_seconds)
    remaining = (due_at - now).total_seconds()
    return {
        "group_id": half.producer_group_id,
        "delay": class_of_first_check(remaining, half.groups_immunity_seconds),
        "half_id": half.half_id,
        "prepared_at": str(half.prepared_at),
        "due_at": str(due_at),
    }
