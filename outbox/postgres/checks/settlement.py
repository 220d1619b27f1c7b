"""Writes the results of a round of checks: cursors, decisions, history, put-backs, parkings.

One transaction, complete before it takes its xid. The cursors are moved first, by
compare-and-set: if another checker has passed these rows, everything is rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import psycopg

from outbox.checks.breaker import CLOSES
from outbox.checks.check_round import CheckResult, Settled, Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import QueueRow
from outbox.errors import CursorMoved
from outbox.failpoints import hit
from outbox.messages.message import End, MessageStatus, ParkedReason
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
Cursor = psycopg.AsyncCursor[Any]


async def settle(connection: AsyncConnection, settlement: Settlement) -> Settled:
    """Write a settlement, all or nothing.

    Raises CursorMoved when another checker was faster, or the rows were read on another server.
    """
    group = settlement.group
    async with connection.transaction(), connection.cursor() as cursor:
        await _require_server(cursor, settlement.server_started_at)
        await _move(cursor, settlement)
        decided = await decide(connection, settlement.ends, racing=True)
        await _resume(cursor, settlement.resumed)
        applied = {settlement.ends[place].half_id for place in decided}
        await _record(cursor, settlement.checks, applied)
        await _put_back(cursor, group, settlement.put_backs)
        parked = await _park(cursor, settlement.parkings)
        if settlement.pause_reason is not None:
            await _pause(cursor, group, settlement.pause_reason)
        wait = settlement.breaker_wait_seconds
        changed = wait is not None and await _set_breaker(cursor, group, wait)
        if settlement.answered is not None:
            statement = "answers" if settlement.answered else "fails"
            await cursor.execute(SQL[statement], {"group": group.id, "version": group.version})
        conflicts = await _conflicts(connection, settlement.ends, decided)
        hit("checker.before_commit")
    return Settled(
        resolution_seconds={
            place: status.resolution_seconds or 0.0 for place, status in decided.items()
        },
        conflicts=conflicts,
        parked=parked,
        breaker_changed=changed,
    )


async def _require_server(cursor: Cursor, started_at: datetime | None) -> None:
    if started_at is None:
        return
    await cursor.execute(SQL["is_same_server"], {"started_at": started_at})
    if await cursor.fetchone() != (True,):
        raise CursorMoved


async def _move(cursor: Cursor, settlement: Settlement) -> None:
    """Move the cursors from where they were read, and delete the rows that they pass."""
    asked = {
        "group": settlement.group.id,
        "delays": list(settlement.moves),
        "positions": [position for position, _ in settlement.moves.values()],
        "goals": [goal for _, goal in settlement.moves.values()],
    }
    await cursor.execute(SQL["move_cursors"], asked)
    if cursor.rowcount != len(settlement.moves):
        raise CursorMoved
    await cursor.execute(SQL["remove"], asked)


async def _resume(cursor: Cursor, half_ids: Sequence[HalfId]) -> None:
    if half_ids:
        await cursor.execute(SQL["resume"], {"half_ids": list(half_ids)})


async def _record(cursor: Cursor, checks: Sequence[CheckResult], applied: set[HalfId]) -> None:
    """Store the history of answered checks; ``applied`` are the halves that this round decided."""
    answered = [(check, check.row, check.answer) for check in checks if check.answer is not None]
    if not answered:
        return
    half_ids = [row.half_id for _, row, _ in answered]
    await cursor.execute(
        SQL["attempts"],
        {
            "half_ids": half_ids,
            "low": min(half_ids),
            "high": max(half_ids),
            "look_ids": [row.look_id for _, row, _ in answered],
            "rounds": [row.round for _, row, _ in answered],
            "attempts": [row.attempt for _, row, _ in answered],
            "asked": [check.asked_at for check, _, _ in answered],
            "outcomes": [answer.outcome.value for _, _, answer in answered],
            "statuses": [answer.http_status for _, _, answer in answered],
            "latencies": [check.latency_ms for check, _, _ in answered],
            "spent": [answer.spent for _, _, answer in answered],
            "applied": [
                answer.verdict is not None and row.half_id in applied for _, row, answer in answered
            ],
            "errors": [answer.error for _, _, answer in answered],
        },
    )


async def open_classes(cursor: Cursor, groups: Sequence[int], delays: Sequence[int]) -> None:
    """Create the delay classes of these groups where they are missing."""
    await cursor.execute(SQL["open_classes"], {"groups": list(groups), "delays": list(delays)})


async def _put_back(cursor: Cursor, group: ProducerGroup, put_backs: Sequence[QueueRow]) -> None:
    if not put_backs:
        return
    delays = [back.delay_seconds for back in put_backs]
    await open_classes(cursor, [group.id] * len(delays), delays)
    await cursor.execute(
        SQL["put_back"],
        {
            "group": group.id,
            "delays": delays,
            "half_ids": [back.half_id for back in put_backs],
            "rounds": [back.round for back in put_backs],
            "check_counts": [back.check_count for back in put_backs],
            "only_unknowns": [back.only_unknown for back in put_backs],
            "ages_from": [back.age_from for back in put_backs],
        },
    )


async def _park(
    cursor: Cursor, parkings: Sequence[tuple[QueueRow, ParkedReason]]
) -> frozenset[HalfId]:
    if not parkings:
        return frozenset()
    half_ids = [row.half_id for row, _ in parkings]
    await cursor.execute(
        SQL["park"],
        {
            "half_ids": half_ids,
            "rounds": [row.round for row, _ in parkings],
            "reasons": [reason.value for _, reason in parkings],
            "check_counts": [row.check_count for row, _ in parkings],
            "low": min(half_ids),
            "high": max(half_ids),
        },
    )
    return frozenset(HalfId(row[0]) for row in await cursor.fetchall())


async def _pause(cursor: Cursor, group: ProducerGroup, reason: str) -> None:
    await cursor.execute(
        SQL["pause_group"], {"group": group.id, "version": group.version, "reason": reason}
    )


async def _set_breaker(cursor: Cursor, group: ProducerGroup, wait_seconds: int) -> bool:
    """Open the breaker for a time from now on, or close it; all checkers read it.

    Return False if the group was changed or resumed meanwhile, which has closed it.
    """
    statement = "close_breaker" if wait_seconds == CLOSES else "open_breaker"
    asked = {"group": group.id, "version": group.version, "wait": wait_seconds}
    await cursor.execute(SQL[statement], asked)
    return cursor.rowcount > 0


async def _conflicts(
    connection: AsyncConnection, ends: Sequence[End], decided: Mapping[int, MessageStatus]
) -> frozenset[int]:
    """Return the places of verdicts that contradict a stored decision."""
    late = [place for place in range(len(ends)) if place not in decided]
    statuses = await read_statuses(
        connection, sorted(ends[place].half_id for place in late), with_publication=False
    )
    return frozenset(
        place
        for place in late
        if (status := statuses.get(ends[place].half_id)) is not None
        and status.op is not None
        and status.op.decision is not ends[place].decision
    )
