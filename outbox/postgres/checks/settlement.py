"""Writes what a round of checks has found out: cursors, decisions, history, put-backs, parkings.

One transaction, sealed before it takes its xid (O5). The cursors come first and by compare-and-set:
if another checker has passed these rows, everything is rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import psycopg

from outbox.checks.breaker import BreakerChange
from outbox.checks.check_round import Attempt, CursorMove, Parking, PutBack, Settled, Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.errors import CursorMoved
from outbox.failpoints import hit
from outbox.messages.message import End
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.decisions import Decided, decide
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load("outbox.postgres.checks.settlement")
Cursor = psycopg.AsyncCursor[Any]


async def settle(connection: AsyncConnection, settlement: Settlement) -> Settled:
    """Write a settlement, all or nothing. Raises CursorMoved when another checker was faster."""
    group = settlement.group
    async with connection.transaction(), connection.cursor() as cursor:
        await _move(cursor, group, settlement.moves)
        decided = await decide(connection, settlement.ends, racing=True)
        await _resume(cursor, settlement.resumed)
        await _record(cursor, settlement.attempts, decided)
        await _put_back(cursor, group, settlement.put_backs)
        parked = await _park(cursor, settlement.parkings)
        if settlement.pause_reason is not None:
            await _pause(cursor, group, settlement.pause_reason)
        if settlement.breaker is not None:
            await _turn_breaker(cursor, group, settlement.breaker)
        conflicts = await _conflicts(connection, settlement.ends, decided)
        hit("checker.before_commit")
    return Settled(
        resolution_seconds={
            place: (end.decided_at - end.prepared_at).total_seconds()
            for place, end in decided.items()
        },
        conflicts=conflicts,
        parked=parked,
    )


async def _move(cursor: Cursor, group: ProducerGroup, moves: Sequence[CursorMove]) -> None:
    await cursor.execute(
        SQL["move_cursors"],
        {
            "group": group.id,
            "delays": [move.delay_seconds for move in moves],
            "positions": [move.position for move in moves],
            "goals": [move.to for move in moves],
        },
    )
    if cursor.rowcount != len(moves):
        raise CursorMoved


async def _resume(cursor: Cursor, half_ids: Sequence[HalfId]) -> None:
    if half_ids:
        await cursor.execute(SQL["resume"], {"half_ids": list(half_ids)})


async def _record(cursor: Cursor, attempts: Sequence[Attempt], decided: dict[int, Decided]) -> None:
    if not attempts:
        return
    half_ids = [attempt.half_id for attempt in attempts]
    await cursor.execute(
        SQL["attempts"],
        {
            "half_ids": half_ids,
            "low": min(half_ids),
            "high": max(half_ids),
            "look_ids": [attempt.look_id for attempt in attempts],
            "rounds": [attempt.round for attempt in attempts],
            "attempts": [attempt.attempt for attempt in attempts],
            "asked": [attempt.asked_at for attempt in attempts],
            "outcomes": [attempt.answer.outcome.value for attempt in attempts],
            "statuses": [attempt.answer.http_status for attempt in attempts],
            "latencies": [attempt.latency_ms for attempt in attempts],
            "spent": [attempt.answer.spent for attempt in attempts],
            "applied": [attempt.place in decided for attempt in attempts],
            "errors": [attempt.answer.error for attempt in attempts],
        },
    )


async def _put_back(cursor: Cursor, group: ProducerGroup, put_backs: Sequence[PutBack]) -> None:
    if not put_backs:
        return
    delays = [back.delay_seconds for back in put_backs]
    await cursor.execute(
        SQL["open_classes"], {"groups": [group.id] * len(delays), "delays": delays}
    )
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


async def _park(cursor: Cursor, parkings: Sequence[Parking]) -> frozenset[HalfId]:
    if not parkings:
        return frozenset()
    half_ids = [parking.half_id for parking in parkings]
    await cursor.execute(
        SQL["park"],
        {
            "half_ids": half_ids,
            "rounds": [parking.round for parking in parkings],
            "reasons": [parking.reason.value for parking in parkings],
            "check_counts": [parking.check_count for parking in parkings],
            "low": min(half_ids),
            "high": max(half_ids),
        },
    )
    return frozenset(HalfId(row[0]) for row in await cursor.fetchall())


async def _pause(cursor: Cursor, group: ProducerGroup, reason: str) -> None:
    await cursor.execute(
        SQL["pause_group"], {"group": group.id, "version": group.version, "reason": reason}
    )


async def _turn_breaker(cursor: Cursor, group: ProducerGroup, change: BreakerChange) -> None:
    """Open the breaker for a while from now on, or close it; all checkers see it."""
    if change.wait_seconds is None:
        await cursor.execute(SQL["close_breaker"], {"group": group.id})
    else:
        asked = {"group": group.id, "wait": change.wait_seconds}
        await cursor.execute(SQL["open_breaker"], asked)


async def _conflicts(
    connection: AsyncConnection, ends: Sequence[End], decided: dict[int, Decided]
) -> frozenset[int]:
    """Return the places of verdicts that meet the opposite decision."""
    late = [place for place in range(len(ends)) if place not in decided]
    standings = await read_statuses(
        connection, sorted(ends[place].half_id for place in late), with_publication=False
    )
    return frozenset(
        place
        for place in late
        if (standing := standings.get(ends[place].half_id)) is not None
        and standing.op is not None
        and standing.op.decision is not ends[place].decision
    )
