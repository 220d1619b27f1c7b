"""Findings that operators accept until a given time; see Acceptances.

One transaction does it all. So unlike other bulk actions it is finished when the call returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg.types.json import Jsonb

from outbox.errors import TimePast
from outbox.operators.acceptances import Acceptance, AcceptanceOrder
from outbox.operators.bulk_actions import BulkAction
from outbox.postgres.operators.audit_log import audit
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import UNREAD_CLASSES

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
FAILURES_KEPT: Final = 100


class PostgresAcceptances:
    """The Acceptances on a pool of connections."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None, until: datetime
    ) -> Sequence[Acceptance]:
        """Report for each known finding whether it may be accepted; see Acceptances.plan."""
        asked = {
            "finding_ids": list(finding_ids),
            "groups": None if groups is None else sorted(groups),
            "unread": sorted(UNREAD_CLASSES),
        }
        async with available(), self._pool.connection() as connection:
            [(past,)] = await (await connection.execute(SQL["past"], {"until": until})).fetchall()
            if past:
                raise TimePast
            rows = await (await connection.execute(SQL["plan"], asked)).fetchall()
        return [Acceptance(finding_id=row[0], refused=row[1]) for row in rows]

    async def accept(self, finding_ids: Sequence[str], order: AcceptanceOrder) -> BulkAction:
        """Accept those findings that still may be accepted; see Acceptances.accept."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            return await _accept(connection, finding_ids, order)


async def _accept(
    connection: AsyncConnection, finding_ids: Sequence[str], order: AcceptanceOrder
) -> BulkAction:
    action, groups = order.action, None if order.groups is None else sorted(order.groups)
    who: dict[str, Any] = {
        "operator": action.operator,
        "reason": action.reason,
        "key_id": action.key_id,
        "groups": groups,
    }
    [(number,)] = await (await connection.execute(SQL["note"], who)).fetchall()
    detail = {"until": order.until.isoformat(), "matched": len(finding_ids)}
    await audit(connection, "bulk.accept_finding", str(number), None, action, detail)
    asked = {
        **who,
        "finding_ids": list(finding_ids),
        "until": order.until,
        "unread": sorted(UNREAD_CLASSES),
        "number": str(number),
    }
    accepted = {row[0] for row in await (await connection.execute(SQL["accept"], asked)).fetchall()}
    failures = [
        {"finding_id": each, "code": "not-acceptable"}
        for each in finding_ids
        if each not in accepted
    ]
    ended = {"id": number, "done": len(accepted), "failed": len(failures)}
    kept = failures[:FAILURES_KEPT]
    await connection.execute(SQL["finish"], {**ended, "failures": Jsonb(kept)})
    return BulkAction(matched=len(finding_ids), failures=kept, finished=True, **ended)
