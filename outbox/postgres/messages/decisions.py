"""Decides half messages: one statement appends op messages and commit log together.

The API's flush uses it, and the check-back's settlement and the relay's recovery inside their own
transactions. So there is one way to decide (G2), and the form of the statement ensures I11: an op
has the decision COMMIT exactly where the commit log has its half.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
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
)
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.state_machine import derive
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.messages.message_status import read_orphans, read_statuses
from outbox.postgres.schema.codes import DECIDED_BY_CODE, DECISION_CODE
from outbox.postgres.sessions.array_literal import number_array, text_array
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.sync_replication import confirm_what_was_read

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
END: Final = SQL["end"].format(on_conflict="")
END_RACING: Final = SQL["end"].format(on_conflict="ON CONFLICT DO NOTHING")
"""The slower form, for when another process may decide the same halves concurrently."""


async def answer_ends(connection: AsyncConnection, ends: Sequence[End]) -> Sequence[EndOutcome]:
    """Decide what is undecided in a separate transaction; answer each end in the order asked.

    Decides once more if another process decides the same halves concurrently.
    """
    try:
        decided = await _decide_at_once(connection, ends)
    except UniqueViolation:
        decided = await _decide_at_once(connection, ends, racing=True)
    others = [end for n, end in enumerate(ends) if n not in decided]
    statuses = await _statuses(connection, others) if others else {}
    if any(status.op is not None for status in statuses.values()):
        await confirm_what_was_read(connection)
    return [
        Ended(status=decided[n], already_ended=False)
        if n in decided
        else _ended_before(end, statuses)
        for n, end in enumerate(ends)
    ]


async def _statuses(
    connection: AsyncConnection, ends: Sequence[End]
) -> dict[tuple[HalfId, Nonce], MessageStatus]:
    """Read the messages' status: from their halves, else from what recovery found in Kafka."""
    found = await read_statuses(connection, sorted({end.half_id for end in ends}))
    statuses = {(half_id, status.nonce): status for half_id, status in found.items()}
    absent = [end for end in ends if (end.half_id, end.nonce) not in statuses]
    return statuses | await read_orphans(connection, absent)


async def _decide_at_once(
    connection: AsyncConnection, ends: Sequence[End], *, racing: bool = False
) -> dict[int, MessageStatus]:
    """Decide and commit: one statement, in one message to the server.

    The commit is a separate message only for a test that kills the process before the commit.
    """
    point = "api.end.before_commit"
    async with connection.transaction() if armed(point) else nullcontext():
        decided = await decide(connection, ends, racing=racing)
        hit(point)
    hit("api.end.after_commit")
    return decided


async def decide(
    connection: AsyncConnection, ends: Sequence[End], *, racing: bool = False
) -> dict[int, MessageStatus]:
    """Append the decisions of those ends that may decide; return what they decided, by place.

    Runs in the caller's transaction, or in a separate one on an autocommit connection. ``racing``
    skips what another process decides concurrently; without it that raises UniqueViolation.
    """
    places = [n for n, end in enumerate(ends) if end.decision is not Resolution.UNKNOWN]
    if not places:
        return {}
    asked = [ends[n] for n in places]
    async with connection.cursor() as cursor:
        await cursor.execute(END_RACING if racing else END, parameters_of(asked))
        rows = await cursor.fetchall()
    return {
        places[place - 1]: _decided_now(asked[place - 1], group, prepared_at, decided_at)
        for place, group, prepared_at, decided_at in rows
    }


def _decided_now(
    end: End, producer_group_id: int, prepared_at: datetime, decided_at: datetime
) -> MessageStatus:
    op = OpMessage(
        decision=end.decision, decided_by=end.decided_by, decided_at=decided_at, reason=end.reason
    )
    return MessageStatus(
        half_id=end.half_id,
        nonce=end.nonce,
        producer_group_id=producer_group_id,
        state=derive(decision=end.decision, parked=False, published=False),
        op=op,
        prepared_at=prepared_at,
    )


def parameters_of(asked: Sequence[End]) -> dict[str, object]:
    """Return the statement's parameters; a column whose values are all the same is sent once."""
    half_ids = [end.half_id for end in asked]
    decision, decisions = _column([DECISION_CODE[end.decision] for end in asked])
    decided_by, deciders = _column([DECIDED_BY_CODE[end.decided_by] for end in asked])
    return {
        "half_ids": number_array(half_ids),
        "nonces": number_array([end.nonce for end in asked]),
        "decision": decision,
        "decisions": decisions,
        "decided_by": decided_by,
        "deciders": deciders,
        "reasons": _texts([end.reason for end in asked]),
        "actors": _texts([end.actor for end in asked]),
        "transaction_ids": _texts([end.transaction_id for end in asked]),
        "awaited": any(end.awaited for end in asked),
        **bounds(half_ids),
        **_scope(asked),
    }


def _column(values: Sequence[int | None]) -> tuple[int | None, str | None]:
    """Return the value that all have, or the array of all values."""
    if values.count(values[0]) == len(values):
        return values[0], None
    return None, number_array(values)


def _texts(texts: Sequence[str | None]) -> str | None:
    return None if texts.count(None) == len(texts) else text_array(texts)


def _scope(asked: Sequence[End]) -> dict[str, object]:
    """Number the callers that are bound to groups and list which groups each may touch (P5)."""
    scopes: dict[frozenset[int], int] = {}
    caller, callers = _column(
        [
            None if end.groups is None else scopes.setdefault(end.groups, len(scopes))
            for end in asked
        ]
    )
    pairs = [(number, group) for groups, number in scopes.items() for group in groups]
    return {
        "caller": caller,
        "callers": callers,
        "scope_callers": number_array([number for number, _ in pairs]),
        "scope_groups": number_array([group for _, group in pairs]),
    }


def _ended_before(end: End, statuses: dict[tuple[HalfId, Nonce], MessageStatus]) -> EndOutcome:
    status = statuses.get((end.half_id, end.nonce))
    if status is None:
        return NoSuchMessage()
    if end.groups is not None and status.producer_group_id not in end.groups:
        return NoSuchMessage()
    if end.transaction_id not in (None, status.transaction_id):
        return NoSuchMessage()
    return Ended(
        status=status,
        already_ended=status.op is not None,
        conflict=status.contradicts(end.decision),
    )
