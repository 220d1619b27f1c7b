"""The lists and filters that people compose, newest first, without ever scanning history.

Undecided, parked and unpublished messages are found from the queues that hold them. Everything
else walks a bounded slice of the newest halves below the cursor and says how far it looked; the
next page goes on from there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from outbox.messages.message_id import HalfId
from outbox.operators.message_view import HistoryEvent, MessageFilter, MessagePage, MessageView
from outbox.postgres.messages.half_store import read_halves
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.candidates import SLICE_ROWS, candidates, slice_end
from outbox.postgres.operators.view_rows import read_event, read_view
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import one_snapshot
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.sql.elements import CompilerElement

    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load("outbox.postgres.operators.message_browser")
_DIALECT: Final[Dialect] = PGDialect_psycopg()  # type: ignore[no-untyped-call]


class PostgresBrowser:
    """The MessageBrowser on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(self, wanted: MessageFilter) -> MessagePage:
        """Return one page; see MessageBrowser.page."""
        async with self._reading() as connection:
            rows = await _run(connection, candidates(wanted))
            half_ids = [HalfId(row["half_id"]) for row in rows]
            end = await _run(connection, slice_end(wanted))
            views = await _views(connection, half_ids[: wanted.limit])
        kept = tuple(view for view in views if wanted.state in (None, view.standing.state))
        if len(half_ids) > wanted.limit:
            return MessagePage(messages=kept, next_before=half_ids[wanted.limit - 1])
        if end and end[0]["looked"] == SLICE_ROWS:
            return MessagePage(
                messages=kept,
                next_before=end[0]["last"],
                searched_back_to=end[0]["back_to"],
            )
        return MessagePage(messages=kept)

    async def get(self, half_id: HalfId, *, payload: bool = False) -> MessageView | None:
        """Return one message; see MessageBrowser.get."""
        async with self._reading() as connection:
            views = await _views(connection, [half_id])
            if views and payload:
                halves = await read_halves(connection, [half_id])
                return replace(views[0], half=halves[half_id], payload=True)
        return views[0] if views else None

    async def history(self, half_id: HalfId) -> Sequence[HistoryEvent]:
        """Return what happened to a message; see MessageBrowser.history."""
        asked = {"half_id": half_id, "half_ids": [half_id], "low": half_id, "high": half_id}
        async with (
            self._reading() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["history"], asked)
            events = [read_event(row) for row in await cursor.fetchall()]
            standings = await read_statuses(connection, [half_id])
        standing = standings.get(half_id)
        if standing is not None and standing.publication is not None and standing.op is not None:
            place = standing.publication
            latency = place.published_at - standing.op.decided_at
            facts = {
                "topic": place.topic,
                "partition": place.partition,
                "offset": place.offset,
                "latency_ms": round(latency.total_seconds() * 1000),
            }
            events.append(HistoryEvent(at=place.published_at, type="published", facts=facts))
        return events

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection whose statements see one instant: a message may move between two."""
        async with available(), self._pool.connection() as connection, one_snapshot(connection):
            yield connection


async def candidate_ids(
    connection: AsyncConnection, wanted: MessageFilter, at_most: int
) -> list[HalfId]:
    """Return the newest ids that match, whatever became of them since; for actions on many."""
    rows = await _run(connection, candidates(replace(wanted, limit=at_most - 1)))
    return [HalfId(row["half_id"]) for row in rows]


async def _views(connection: AsyncConnection, half_ids: Sequence[HalfId]) -> list[MessageView]:
    """Read messages as they stand, without values, in the order asked."""
    if not half_ids:
        return []
    bounds = {"half_ids": list(half_ids), "low": min(half_ids), "high": max(half_ids)}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["views"], bounds)
        rows = {row["half_id"]: row for row in await cursor.fetchall()}
    standings = await read_statuses(connection, half_ids)
    return [
        read_view(rows[half_id], standings[half_id])
        for half_id in half_ids
        if half_id in rows and half_id in standings
    ]


async def _run(connection: AsyncConnection, statement: CompilerElement | None) -> list[Any]:
    """Run a composed statement."""
    if statement is None:
        return []
    compiled = statement.compile(dialect=_DIALECT)
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(compiled.string, compiled.params)
        return await cursor.fetchall()
