"""The audit log: appends who intervened, and why, in the transaction of the intervention; lists it.

A list reads a bounded slice of the newest entries below the cursor, and reports where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.operators.audit_log import AuditEntry, AuditFilter
from outbox.operators.message_view import ListPage, OperatorAction
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection, Connection

SQL: Final = load(__name__)
SLICE_ROWS: Final = 20_000
"""The most entries that one page reads to find matches."""
_NEWEST: Final = (1 << 63) - 1


class PostgresAuditLog:
    """The entries of the audit log."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def page(self, wanted: AuditFilter) -> ListPage[AuditEntry]:
        """Return the newest entries that match. Raises DatabaseUnavailable."""
        async with available(), self._pool.connection() as connection:
            rows = await rows_of(connection, SQL["page"], _asked(wanted))
        found = [_entry(row) for row in rows if row["id"] is not None]
        shown = found[: wanted.limit]
        if len(found) > wanted.limit:
            return ListPage(data=shown, next_before=shown[-1].id)
        if rows[0]["looked"] == SLICE_ROWS:
            last, back_to = rows[0]["last_id"], rows[0]["back_to"]
            return ListPage(data=shown, next_before=last, searched_back_to=back_to)
        return ListPage(data=shown)


def _asked(wanted: AuditFilter) -> dict[str, Any]:
    return {
        **asdict(wanted),
        "groups": None if wanted.groups is None else sorted(wanted.groups),
        "before": _NEWEST if wanted.before is None else wanted.before,
        "limit": wanted.limit + 1,
        "slice": SLICE_ROWS,
    }


def _entry(row: Mapping[str, Any]) -> AuditEntry:
    names = ("id", "at", "action", "target", "key_id", "operator", "reason", "detail")
    message_id = None if row["half_id"] is None else row["target"]
    return AuditEntry(**{name: row[name] for name in names}, message_id=message_id)


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
