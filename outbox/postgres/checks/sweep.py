"""The sweep: each undecided half is put into the check queue once, cursor and rows in one commit.

The sweep is a range anti-join of half and op messages over a bounded slice of ids. It never passes
the watermark and never reads halves of the last second. Nothing is scanned twice.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from outbox.checks.policy import class_of_first_check
from outbox.errors import CursorMoved
from outbox.failpoints import hit
from outbox.postgres.checks.settlement import as_rows, open_classes
from outbox.postgres.sessions.availability import transaction
from outbox.postgres.sessions.reads import read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
YOUNGEST: Final = timedelta(seconds=1)
"""Halves younger than this are left for the next sweep; the shortest immunity is equally long."""


class PostgresSweep:
    """The Sweep on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def sweep(self, limit: int) -> int:
        """Queue the undecided among the next ``limit`` halves; see Sweep.sweep."""
        async with transaction(self._pool) as connection:
            await read_in_key_order(connection)
            [start] = await rows_of(connection, SQL["position"], {})
            young = {"young": start["now"] - YOUNGEST, "limit": limit}
            [ahead] = await rows_of(connection, SQL["slice"], start | young)
            part = start | ahead
            if not part["looked"]:
                return 0
            found = await rows_of(connection, SQL["undecided"], part)
            await _queue(connection, part, found)
            hit("sweep.before_commit")
        hit("sweep.after_commit")
        return int(part["looked"])


async def _queue(
    connection: AsyncConnection, part: dict[str, Any], found: list[dict[str, Any]]
) -> None:
    """Move the cursor and append the halves. Raises CursorMoved when another sweep was faster."""
    async with connection.cursor() as cursor:
        await cursor.execute(SQL["move"], part)
        if cursor.rowcount != 1:
            raise CursorMoved
        if found:
            for half in found:
                remaining = (half["due_at"] - part["now"]).total_seconds()
                half["delay"] = class_of_first_check(remaining, half["groups_immunity_seconds"])
            await open_classes(cursor, {(half["group_id"], half["delay"]) for half in found})
            await cursor.execute(SQL["queue"], {"queued": as_rows(found)})
