"""Writes the results of a round of checks: cursors, decisions, history, put-backs, parkings.

One transaction, complete before it takes its xid. The cursors are moved first, by
compare-and-set: if another checker has passed these rows, everything is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.types.json import Jsonb

from outbox.checks.breaker import CLOSES
from outbox.checks.check_round import QueueRow, Settled, Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.errors import CursorMoved
from outbox.failpoints import hit
from outbox.messages.message import End, MessageStatus, ParkedReason
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
_DUMPS: Final = partial(json.dumps, default=str)
Cursor = psycopg.AsyncCursor[Any]


async def settle(connection: AsyncConnection, settlement: Settlement) -> Settled:
    """Write a settlement, all or nothing.

    Raises CursorMoved when another checker was faster, or the rows were read on another server.
    """
    group = settlement.group
    async with connection.transaction(), connection.cursor() as cursor:
        await _move(cursor, settlement)
        decided = await decide(connection, settlement.ends, racing=True)
        applied = {settlement.ends[place].half_id for place in decided}
        await _record(cursor, settlement.checks, applied)
        await _put_back(cursor, group, settlement.put_backs)
        parked = await _park(cursor, settlement.parkings)
        breaker_changed = await _change_group(cursor, settlement)
        conflicts = await _conflicts(connection, settlement.ends, decided)
        hit("checker.before_commit")
    return Settled(
        resolution_seconds={
            place: status.resolution_seconds or 0.0 for place, status in decided.items()
        },
        conflicts=conflicts,
        parked=parked,
        breaker_changed=breaker_changed,
    )


async def _move(cursor: Cursor, settlement: Settlement) -> None:
    """Move the cursors from where they were read, and delete the rows that they pass."""
    asked = {
        "group": settlement.group.id,
        "started_at": settlement.server_started_at,
        "delays": list(settlement.moves),
        "positions": [position for position, _ in settlement.moves.values()],
        "goals": [goal for _, goal in settlement.moves.values()],
    }
    await cursor.execute(SQL["move_cursors"], asked)
    if cursor.rowcount != len(settlement.moves):
        raise CursorMoved
    await cursor.execute(SQL["remove"], asked)


async def _record(cursor: Cursor, checks: Sequence[QueueRow], applied: set[HalfId]) -> None:
    """Store the history of answered checks; ``applied`` are the halves that this round decided."""
    made = [
        _columns(row, "half_id", "look_id", "round", "attempt")
        | _columns(answer, "asked_at", "outcome", "http_status", "latency_ms", "spent", "error")
        | {"applied": answer.verdict is not None and row.half_id in applied}
        for row in checks
        if (answer := row.answer) is not None
    ]
    if made:
        span = bounds([row.half_id for row in checks])
        await cursor.execute(SQL["attempts"], {"made": as_rows(made), **span})


def _columns(value: object, *names: str) -> dict[str, Any]:
    """Return the values of the columns that have the names of attributes."""
    return {name: getattr(value, name) for name in names}


def as_rows(rows: Sequence[Mapping[str, Any]]) -> Jsonb:
    """Return rows as jsonb_to_recordset reads them; a time is a text."""
    return Jsonb(rows, dumps=_DUMPS)


async def open_classes(cursor: Cursor, classes: Set[tuple[int, int]]) -> None:
    """Create the delay classes, of a group and its delay each, where they are missing."""
    groups, delays = zip(*classes, strict=True)
    await cursor.execute(SQL["open_classes"], {"groups": list(groups), "delays": list(delays)})


async def _put_back(cursor: Cursor, group: ProducerGroup, put_backs: Sequence[QueueRow]) -> None:
    if not put_backs:
        return
    await open_classes(cursor, {(group.id, row.delay_seconds) for row in put_backs})
    names = ("delay_seconds", "half_id", "round", "check_count", "only_unknown", "age_from")
    appended = as_rows([_columns(row, *names) for row in put_backs])
    await cursor.execute(SQL["put_back"], {"group": group.id, "appended": appended})


async def _park(
    cursor: Cursor, parkings: Sequence[tuple[QueueRow, ParkedReason]]
) -> frozenset[HalfId]:
    if not parkings:
        return frozenset()
    names = ("half_id", "round", "check_count")
    parked = as_rows([{"reason": reason, **_columns(row, *names)} for row, reason in parkings])
    span = bounds([row.half_id for row, _ in parkings])
    await cursor.execute(SQL["park"], {"parked": parked, **span})
    return frozenset(HalfId(row[0]) for row in await cursor.fetchall())


async def _change_group(cursor: Cursor, settlement: Settlement) -> bool:
    """Pause the group, set its breaker, which all checkers read, and note whether it answers.

    Return False if the breaker stays as it is: the group was changed or resumed meanwhile.
    """
    wait = settlement.breaker_wait_seconds
    asked = {
        "group": settlement.group.id,
        "version": settlement.group.version,
        "reason": settlement.pause_reason,
        "wait": wait,
    }
    if settlement.pause_reason is not None:
        await cursor.execute(SQL["pause_group"], asked)
    if settlement.answered is not None:
        await cursor.execute(SQL["answers" if settlement.answered else "fails"], asked)
    if wait is None:
        return False
    await cursor.execute(SQL["close_breaker" if wait == CLOSES else "open_breaker"], asked)
    return cursor.rowcount > 0


async def _conflicts(
    connection: AsyncConnection, ends: Sequence[End], decided: Mapping[int, MessageStatus]
) -> frozenset[int]:
    """Return the places of verdicts that contradict a stored decision."""
    late = {place: end for place, end in enumerate(ends) if place not in decided}
    half_ids = sorted(end.half_id for end in late.values())
    statuses = await read_statuses(connection, half_ids, with_publication=False)
    decisions = {half_id: each.op.decision for half_id, each in statuses.items() if each.op}
    return frozenset(
        place
        for place, end in late.items()
        if decisions.get(end.half_id, end.decision) is not end.decision
    )
