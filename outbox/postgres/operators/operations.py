"""An operator's interventions, each in one transaction with its audit row."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from psycopg.types.json import Jsonb

from outbox.errors import MessageNotFound, NotRecheckable
from outbox.messages.message import End, Ended, MessageStatus
from outbox.messages.message_id import HalfId, message_id_of
from outbox.messages.state_machine import UNDECIDED, contradicts
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load("outbox.postgres.operators.operations")


class PostgresOperations:
    """The Operations on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def recheck(self, half_id: HalfId, action: OperatorAction) -> datetime:
        """Make an undecided message due now; see Operations.recheck."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            standing = (await read_statuses(connection, [half_id])).get(half_id)
            if standing is None:
                raise MessageNotFound
            return await recheck_one(connection, standing, 1, action)

    async def force_end(self, end: End, action: OperatorAction) -> Ended:
        """Decide in the operator's name; see Operations.force_end."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            decided = await decide(connection, [end], racing=True)
            standing = (await read_statuses(connection, [end.half_id])).get(end.half_id)
            if standing is None or standing.nonce != end.nonce:
                raise MessageNotFound
            if end.groups is not None and standing.producer_group_id not in end.groups:
                raise MessageNotFound
            detail = {"decision": end.decision.value, "applied": bool(decided)}
            target = str(message_id_of(end.half_id, end.nonce))
            await audit(connection, "message.force_end", target, end.half_id, action, detail)
        return Ended(
            standing=standing,
            already_ended=not decided,
            conflict=contradicts(standing.state, end.decision),
        )


async def recheck_one(
    connection: AsyncConnection, standing: MessageStatus, place: int, action: OperatorAction
) -> datetime:
    """Make one message due now, in the caller's transaction; return when it is due.

    ``place`` is the message's number in that transaction. Raises NotRecheckable.
    """
    if standing.state not in UNDECIDED:
        raise NotRecheckable
    await connection.execute(SQL["open_class"], {"group": standing.producer_group_id})
    asked = {"half_id": standing.half_id, "place": place}
    row = await (await connection.execute(SQL["recheck"], asked)).fetchone()
    assert row is not None
    target = str(standing.message_id)
    await audit(connection, "message.recheck", target, standing.half_id, action)
    due_at: datetime = row[0]
    return due_at


async def audit(
    connection: AsyncConnection,
    what: str,
    target: str,
    half_id: HalfId | None,
    action: OperatorAction,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Append who intervened and why, in the caller's transaction."""
    await connection.execute(
        SQL["audit"],
        {
            "action": what,
            "target": target,
            "half_id": half_id,
            "key_id": action.key_id,
            "operator": action.operator,
            "reason": action.reason,
            "detail": None if detail is None else Jsonb(dict(detail)),
        },
    )
