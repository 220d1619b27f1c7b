"""Decides half messages: one statement that appends ops and commit log together.

Used by the API's flush and, inside its own transaction, by the check-back's settlement, so there is
one way to decide (G2), and I11 (op COMMIT exactly where the commit log has it) holds by its form.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from psycopg.errors import UniqueViolation

from outbox.failpoints import armed, hit
from outbox.messages.message import (
    End,
    Ended,
    EndOutcome,
    MessageStatus,
    NoSuchMessage,
    OpMessage,
    Resolution,
    State,
)
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.state_machine import end as end_state
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.relay.orphans import read_orphans
from outbox.postgres.schema.codes import DECIDED_BY_CODE, DECISION_CODE
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.sync_replication import confirm_what_was_read

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load("outbox.postgres.messages.half_store")
END: Final = SQL["end"].format(on_conflict="")
END_RACING: Final = SQL["end"].format(on_conflict="ON CONFLICT DO NOTHING")
"""The slower form, for when another process may decide the same halves at this moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the statement wrote for one end: whose half it was, its birth and its decision."""

    producer_group_id: int
    prepared_at: datetime
    decided_at: datetime


async def answer_ends(connection: AsyncConnection, ends: Sequence[End]) -> Sequence[EndOutcome]:
    """Decide what is open in a transaction of its own and answer each end in the order asked."""
    try:
        decided = await _decide_at_once(connection, ends)
    except UniqueViolation:
        decided = await _decide_at_once(connection, ends, racing=True)
    rest = [end for n, end in enumerate(ends) if n not in decided]
    standings = await _standings(connection, rest)
    if any(standing.op is not None for standing in standings.values()):
        await confirm_what_was_read(connection)
    return [
        _fresh(end, decided[n]) if n in decided else _standing(end, standings)
        for n, end in enumerate(ends)
    ]


async def _standings(
    connection: AsyncConnection, ends: Sequence[End]
) -> dict[tuple[HalfId, Nonce], MessageStatus]:
    """Read where the messages stand: by their halves, else by what recovery learned from Kafka."""
    found = await read_statuses(connection, sorted({end.half_id for end in ends}))
    standings = {(half_id, standing.nonce): standing for half_id, standing in found.items()}
    absent = [end for end in ends if (end.half_id, end.nonce) not in standings]
    return standings | await read_orphans(connection, absent)


async def _decide_at_once(
    connection: AsyncConnection, ends: Sequence[End], *, racing: bool = False
) -> dict[int, Decided]:
    """Decide and commit: one statement, in one message to the server.

    Only a test that wants to die before the commit gives the commit a message of its own.
    """
    point = "api.end.before_commit"
    async with connection.transaction() if armed(point) else nullcontext():
        decided = await decide(connection, ends, racing=racing)
        hit(point)
    hit("api.end.after_commit")
    return decided


async def decide(
    connection: AsyncConnection, ends: Sequence[End], *, racing: bool = False
) -> dict[int, Decided]:
    """Append the decisions of those ends that may decide; return them by their place in ``ends``.

    Runs in the caller's transaction, or in one of its own on an autocommit connection. ``racing``
    skips what another process decides at this moment; without it that raises UniqueViolation.
    """
    places = [n for n, end in enumerate(ends) if end.decision is not Resolution.UNKNOWN]
    if not places:
        return {}
    asked = [ends[n] for n in places]
    parameters = {**_columns(asked), **_scope(asked)}
    async with connection.cursor() as cursor:
        await cursor.execute(END_RACING if racing else END, parameters)
        rows = await cursor.fetchall()
    return {
        places[place - 1]: Decided(
            producer_group_id=group, prepared_at=prepared_at, decided_at=decided_at
        )
        for place, group, prepared_at, decided_at in rows
    }


def _columns(asked: Sequence[End]) -> dict[str, object]:
    half_ids = [end.half_id for end in asked]
    return {
        "half_ids": half_ids,
        "nonces": [end.nonce for end in asked],
        "decisions": [DECISION_CODE[end.decision] for end in asked],
        "decided_by": [DECIDED_BY_CODE[end.decided_by] for end in asked],
        "reasons": [end.reason for end in asked],
        "actors": [end.actor for end in asked],
        "transaction_ids": [end.transaction_id for end in asked],
        "low": min(half_ids),
        "high": max(half_ids),
    }


def _scope(asked: Sequence[End]) -> dict[str, object]:
    """Number the callers that are bound to groups and list which groups each may touch (P5)."""
    callers: dict[frozenset[int], int] = {}
    numbers = [
        None if end.groups is None else callers.setdefault(end.groups, len(callers))
        for end in asked
    ]
    pairs = [(number, group) for groups, number in callers.items() for group in groups]
    return {
        "callers": numbers,
        "scope_callers": [number for number, _ in pairs],
        "scope_groups": [group for _, group in pairs],
    }


def _fresh(end: End, decided: Decided) -> Ended:
    op = OpMessage(
        decision=end.decision,
        decided_by=end.decided_by,
        decided_at=decided.decided_at,
        reason=end.reason,
    )
    standing = MessageStatus(
        half_id=end.half_id,
        nonce=end.nonce,
        producer_group_id=decided.producer_group_id,
        state=end_state(State.PREPARED, end.decision),
        op=op,
        prepared_at=decided.prepared_at,
    )
    return Ended(standing=standing, already_ended=False)


def _standing(end: End, standings: dict[tuple[HalfId, Nonce], MessageStatus]) -> EndOutcome:
    standing = standings.get((end.half_id, end.nonce))
    if standing is None:
        return NoSuchMessage()
    if end.groups is not None and standing.producer_group_id not in end.groups:
        return NoSuchMessage()
    if end.transaction_id not in (None, standing.transaction_id):
        return NoSuchMessage()
    op = standing.op
    conflict = op is not None and end.decision not in (op.decision, Resolution.UNKNOWN)
    return Ended(standing=standing, already_ended=op is not None, conflict=conflict)
