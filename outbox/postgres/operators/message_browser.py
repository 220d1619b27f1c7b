"""Lists messages by the filters that people compose, newest first, and never scans history.

A page looks at a slice of a queue: a bounded number of its messages below the cursor. It reports
where the slice ends, and the next page continues from there. Undecided, parked and unpublished
messages have queues; every other filter, and a backlog of unpublished messages that is longer than
a slice, looks at the newest halves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from outbox.errors import MessageNotFound
from outbox.messages.message import MessageStatus, ParkedReason, State
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.operators.message_view import (
    GroupCheck,
    GroupChecks,
    HistoryEvent,
    LastCheck,
    MessageFilter,
    MessagePage,
    MessageView,
)
from outbox.postgres.messages.half_rows import read_half
from outbox.postgres.messages.halves import read_shown_half
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators import queues
from outbox.postgres.operators.candidates import (
    SLICE_ROWS,
    Queue,
    candidates,
    looked_at,
    queue_of,
    unpublished_at_most,
)
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import one_snapshot, read_in_key_order, rows_of, run
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
CHECKED_ROWS: Final = 5_000
"""The most checks that are read to find those of a group."""


class PostgresMessageBrowser:
    """Lists and filters of messages. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def page(self, wanted: MessageFilter) -> MessagePage:
        """Return the newest messages that match."""
        async with self._reading() as connection:
            is_long = await _is_long_backlog(connection, wanted)
            found = await _search(connection, wanted, None if is_long else queue_of(wanted))
            views = await _views(connection, found.half_ids)
            cut = [HalfId(found.next_before)] if found.next_before and found.cut_off else []
            end = await _views(connection, cut)
        return MessagePage(
            messages=tuple(v for v in views if wanted.state in (None, v.status.state)),
            next_before=found.next_before,
            searched_back_to=end[0].half.prepared_at if end else None,
        )

    async def get(self, half_id: HalfId, *, payload: bool = False) -> MessageView | None:
        """Return the current state of a message; ``payload`` adds key, headers and value."""
        async with self._reading() as connection:
            views = await _views(connection, [half_id])
            shown = await read_shown_half(connection, half_id) if views and payload else None
        if shown is not None:
            half, damaged = shown
            return replace(views[0], half=half, payload=True, headers_damaged=damaged)
        return views[0] if views else None

    async def checks(self, group_id: int, limit: int) -> GroupChecks:
        """Return the newest checks of a group, among those of the messages that came last."""
        asked = {"group": group_id, "limit": limit, "slice": CHECKED_ROWS}
        async with self._reading() as connection:
            rows = await rows_of(connection, SQL["checks"], asked)
        cut_off = rows[0]["looked"] == CHECKED_ROWS
        return GroupChecks(
            data=tuple(_check(row) for row in rows if row["half_id"] is not None),
            searched_back_to=rows[0]["back_to"] if cut_off else None,
        )

    async def history(self, half_id: HalfId, nonce: Nonce) -> Sequence[HistoryEvent]:
        """Return the events of a message, oldest first. Raises MessageNotFound.

        After a failover that lost the last transactions, their ids are given to other messages.
        """
        asked = {"half_id": half_id, "half_ids": [half_id], "low": half_id, "high": half_id}
        async with self._reading() as connection:
            happened = await rows_of(connection, SQL["history"], asked)
            statuses = await read_statuses(connection, [half_id])
        events = [HistoryEvent(**row) for row in happened]
        status = statuses.get(half_id)
        if status is None or status.nonce != nonce:
            raise MessageNotFound
        if status.publication is not None and status.op is not None:
            place = status.publication
            latency = place.published_at - status.op.decided_at
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
        """Lend a connection whose statements have one snapshot: a message may move between two."""
        async with available(), self._pool.connection() as connection, one_snapshot(connection):
            await read_in_key_order(connection)
            yield connection


class _Found(NamedTuple):
    """Half ids that match, and where the next page goes on; ``cut_off``: at the end of a slice."""

    half_ids: Sequence[HalfId]
    next_before: int | None = None
    cut_off: bool = False


async def _search(
    connection: AsyncConnection, wanted: MessageFilter, queue: Queue | None
) -> _Found:
    """Return the newest messages of a queue that match, of a slice of it."""
    rows = await run(connection, candidates(wanted, queue))
    half_ids = [HalfId(row["half_id"]) for row in rows]
    if len(half_ids) > wanted.limit:
        return _Found(half_ids[: wanted.limit], half_ids[wanted.limit - 1])
    [end] = await run(connection, looked_at(wanted, queue))
    if end["looked"] == SLICE_ROWS:
        return _Found(half_ids, end["last"], cut_off=True)
    return _Found(half_ids)


async def candidate_ids(
    connection: AsyncConnection, wanted: MessageFilter, at_most: int, *, held: bool
) -> list[HalfId]:
    """Return the newest ids that match, for bulk actions; ``held``: only what Kafka refuses."""
    await read_in_key_order(connection)
    queue = [queues.unsettled()] if held else queue_of(wanted)
    half_ids: list[HalfId] = []
    while True:
        rest = replace(wanted, limit=at_most - len(half_ids))
        found = await _search(connection, rest, queue)
        half_ids += found.half_ids
        if found.next_before is None or len(half_ids) == at_most:
            return half_ids
        wanted = replace(wanted, before=found.next_before)


async def _views(connection: AsyncConnection, half_ids: Sequence[HalfId]) -> list[MessageView]:
    """Read messages in their present state, without values, in the order asked."""
    if not half_ids:
        return []
    bounds = {"half_ids": list(half_ids), "low": min(half_ids), "high": max(half_ids)}
    rows = {row["half_id"]: row for row in await rows_of(connection, SQL["views"], bounds)}
    statuses = await read_statuses(connection, half_ids)
    return [
        _view(rows[half_id], statuses[half_id])
        for half_id in half_ids
        if half_id in rows and half_id in statuses
    ]


async def _is_long_backlog(connection: AsyncConnection, wanted: MessageFilter) -> bool:
    """Return whether more messages are unpublished than one slice has; most new ones are then."""
    if wanted.state is not State.COMMITTED or wanted.transaction_id is not None:
        return False
    (row,) = await run(connection, unpublished_at_most())
    return bool(row["unpublished"] > SLICE_ROWS)


def _view(row: Mapping[str, Any], status: MessageStatus) -> MessageView:
    """Build a message's view; its half has no key, headers and value."""
    hidden = {"key": None, "value": None, "headers": None}
    is_parked = status.state is State.PARKED
    return MessageView(
        half=read_half({**row, **hidden}),
        status=status,
        value_bytes=row["value_bytes"],
        next_check_at=row["next_check_at"] if status.state is State.PREPARED else None,
        check_count=row["checks"],
        last_check=LastCheck(**_answer(row)) if row["asked_at"] else None,
        parked_at=row["parked_at"] if is_parked else None,
        parked_reason=ParkedReason(row["parked_reason"]) if is_parked else None,
    )


def _check(row: Mapping[str, Any]) -> GroupCheck:
    return GroupCheck(
        **_answer(row),
        message_id=message_id_text(HalfId(row["half_id"]), Nonce(row["nonce"])),
        attempt=row["attempt"],
        counted=row["counted"],
        applied=row["applied"],
    )


def _answer(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a check's endpoint answered, and when."""
    names = ("outcome", "http_status", "latency_ms")
    return {"at": row["asked_at"], **{name: row[name] for name in names}}
