"""The sweep: each undecided half is put into the check queue once, cursor and rows in one commit.

The sweep is a range anti-join of half and op messages over a bounded slice of ids. It never passes
the watermark and never reads halves of the last second. Nothing is scanned twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg.rows import dict_row

from outbox.checks.check_round import SweepRound
from outbox.checks.delays import class_of_first_check
from outbox.errors import CursorMoved
from outbox.failpoints import hit
from outbox.postgres.checks.settlement import open_classes
from outbox.postgres.sessions.array_literal import number_array
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.key_order import read_in_key_order
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
YOUNGEST: Final = timedelta(seconds=1)
"""Halves younger than this are left for the next sweep; the shortest immunity is equally long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """The half ids where a sweep starts and ends, and when they were read."""

    position: int
    last: int
    looked: int
    now: datetime


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
            part = await _slice(connection, limit)
            if part is None:
                return SweepRound(looked=0, queued=0)
            found = await _undecided(connection, part)
            await _queue(connection, part, found)
            hit("sweep.before_commit")
        hit("sweep.after_commit")
        return SweepRound(looked=part.looked, queued=len(found))


async def _slice(connection: AsyncConnection, limit: int) -> _Slice | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        start = await _start(cursor)
        await cursor.execute(
            SQL["slice"],
            {
                "position": start["position"],
                "bound": start["bound"],
                "young": start["now"] - YOUNGEST,
                "limit": limit,
            },
        )
        part = await cursor.fetchone()
    if part is None or not part["looked"]:
        return None
    return _Slice(**part, position=start["position"], now=start["now"])


async def _start(cursor: psycopg.AsyncCursor[dict[str, Any]]) -> dict[str, Any]:
    """Read the cursor; the first sweep of all creates it."""
    await cursor.execute(SQL["position"])
    start = await cursor.fetchone()
    if start is None:
        await cursor.execute(SQL["start"])
        return await _start(cursor)
    return start


async def _undecided(connection: AsyncConnection, part: _Slice) -> list[_Undecided]:
    bounds = {"position": part.position, "last": part.last}
    cursor = await connection.execute(SQL["undecided"], bounds)
    return list(map(_Undecided._make, await cursor.fetchall()))


async def _queue(connection: AsyncConnection, part: _Slice, found: list[_Undecided]) -> None:
    async with connection.cursor() as cursor:
        await cursor.execute(SQL["move"], {"position": part.position, "last": part.last})
        if cursor.rowcount != 1:
            raise CursorMoved
        if found:
            due = [half.prepared_at + timedelta(seconds=half.immunity_seconds) for half in found]
            delays = [
                class_of_first_check((at - part.now).total_seconds(), half.groups_immunity_seconds)
                for half, at in zip(found, due, strict=True)
            ]
            groups = [half.producer_group_id for half in found]
            classes = set(zip(groups, delays, strict=True))
            await open_classes(cursor, [group for group, _ in classes], [d for _, d in classes])
            await cursor.execute(SQL["queue"], _columns(found, groups, delays, due))


def _columns(
    found: list[_Undecided], groups: list[int], delays: list[int], due: list[datetime]
) -> dict[str, str]:
    return {
        "groups": number_array(groups),
        "delays": number_array(delays),
        "half_ids": number_array(half.half_id for half in found),
        "prepared": _time_array(half.prepared_at for half in found),
        "due": _time_array(due),
    }


def _time_array(times: Iterable[datetime]) -> str:
    return "{" + ",".join([time.isoformat() for time in times]) + "}"
