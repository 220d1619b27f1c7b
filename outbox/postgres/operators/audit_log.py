"""Appends who intervened, and why, in the transaction of the intervention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.operators.message_view import OperatorAction
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Connection

SQL: Final = load(__name__)


async def audit(
    connection: AsyncConnection,
    what: str,
    target: str,
    half_id: HalfId | None,
    action: OperatorAction,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Append an intervention of the API."""
    await connection.execute(SQL["audit"], _row(what, target, half_id, action, detail))


def audit_command(
    session: Connection,
    what: str,
    target: str,
    action: OperatorAction,
    detail: Mapping[str, object],
) -> None:
    """Append an intervention of the command line."""
    session.execute(SQL["audit"], _row(what, target, None, action, detail))


def _row(
    what: str,
    target: str,
    half_id: HalfId | None,
    action: OperatorAction,
    detail: Mapping[str, object] | None,
) -> dict[str, object]:
    return {
        "action": what,
        "target": target,
        "half_id": half_id,
        "key_id": action.key_id,
        "operator": action.operator,
        "reason": action.reason,
        "detail": None if detail is None else Jsonb(dict(detail)),
    }
