"""What operators do to one message or one finding, each in one transaction with its audit row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from outbox.errors import MessageNotFound, NotRecheckable, TimePast
from outbox.messages.message import End, Ended, MessageStatus, Resolution
from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.messages.minute_counts import count
from outbox.postgres.sessions.availability import transaction
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import UNREAD_CAUSES

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)


class PostgresOperations:
    """An operator's interventions. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def recheck(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> datetime:
        """Make an undecided message due now, with a new round of checks; return when.

        Raises MessageNotFound, or NotRecheckable when it is decided.
        """
        async with transaction(self._pool) as connection:
            status = (await read_statuses(connection, [half_id])).get(half_id)
            if status is None or status.nonce != nonce:
                raise MessageNotFound
            return await recheck_one(connection, status, 1, action)

    async def force_end(self, end: End, action: OperatorAction) -> Ended:
        """Decide in the name of the operator. Raises MessageNotFound."""
        async with transaction(self._pool) as connection:
            [ended] = await force_all(connection, [end], action)
            if ended is None:
                raise MessageNotFound
        return ended

    async def accept(self, finding_id: str, until: datetime, action: OperatorAction) -> bool:
        """Accept an open finding until a time; False if there is no such finding.

        An unread part of the plan cannot be accepted: a run that did not read it is not clean.
        Raises TimePast.
        """
        asked = {"finding_id": finding_id, "until": until, "unread": list(UNREAD_CAUSES)}
        async with transaction(self._pool) as connection:
            [found] = await rows_of(connection, SQL["accept"], asked)
            if found["past"]:
                raise TimePast
            if found["cause"] is None:
                return False
            detail = {"cause": found["cause"], "until": until.isoformat()}
            entry = audit_entry("finding.accept", finding_id, action, detail, found["half_id"])
            await connection.execute(*entry)
        return True


async def force_all(
    connection: AsyncConnection, ends: Sequence[End], action: OperatorAction
) -> list[Ended | None]:
    """Decide in the operator's name, in the caller's transaction; return the answer to each end.

    None: there is no such message in its groups. All in one statement: a shard has one commit row a
    flush.
    """
    decided = await decide(connection, ends, racing=True)
    for decision, name in _COUNTED_AS.items():
        mine = [each for place, each in decided.items() if ends[place].decision is decision]
        await count(connection, [each.producer_group_id for each in mine], name)
    statuses = await read_statuses(connection, [end.half_id for end in ends])
    answers: list[Ended | None] = []
    for place, end in enumerate(ends):
        applied, status = place in decided, statuses.get(end.half_id)
        detail = {"decision": end.decision.value, "applied": applied}
        target = str(message_id_of(end.half_id, end.nonce))
        entry = audit_entry("message.force_end", target, action, detail, end.half_id)
        await connection.execute(*entry)
        if (
            status is None
            or status.nonce != end.nonce
            or (end.groups is not None and status.producer_group_id not in end.groups)
        ):
            answers.append(None)
        else:
            conflict = status.contradicts(end.decision)
            answers.append(Ended(status=status, already_ended=not applied, conflict=conflict))
    return answers


_COUNTED_AS: Final = {Resolution.COMMIT: "committed", Resolution.ROLLBACK: "rolled_back"}


async def recheck_one(
    connection: AsyncConnection, status: MessageStatus, place: int, action: OperatorAction
) -> datetime:
    """Make one message due now, in the caller's transaction; return when it is due.

    ``place`` is the message's number in that transaction. Raises NotRecheckable.
    """
    if status.op is not None:
        raise NotRecheckable
    asked = {"half_id": status.half_id, "place": place}
    [row] = await rows_of(connection, SQL["recheck"], asked)
    target = str(status.message_id)
    entry = audit_entry("message.recheck", target, action, half_id=status.half_id)
    await connection.execute(*entry)
    due_at: datetime = row["due_at"]
    return due_at
