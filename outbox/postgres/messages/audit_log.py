"""The audit log: appends who intervened, and why, in the transaction of the intervention; lists it.

A list reads a bounded slice of the newest entries below the cursor, and reports where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, LiteralString

from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.operators.audit_log import AuditEntry
from outbox.operators.message_view import ListPage, OperatorAction
from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

SQL: Final = load(__name__)
SLICE_ROWS: Final = 20_000
"""The most entries that one page reads to find matches."""


class PostgresAuditLog:
    """The entries of the audit log."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def page(self, asked: Mapping[str, Any]) -> ListPage[AuditEntry]:
        """Return the newest ``limit`` entries that match; ``asked`` has the statement's parameters.

        None is no condition. ``groups`` are the ids that the caller is bound to: such a caller sees
        the entries of its groups and of their messages. ``before`` continues below an entry. Raises
        DatabaseUnavailable.
        """
        limit = asked["limit"]
        parameters = {**asked, "limit": limit + 1, "slice": SLICE_ROWS}
        rows = await rows_from(self._pool, SQL["page"], parameters)
        found = [AuditEntry.model_validate(row) for row in rows if row["id"] is not None]
        if len(found) > limit:
            return ListPage(data=found[:limit], next_before=found[limit - 1].id)
        return ListPage(
            data=found, next_before=rows[0]["last_id"], searched_back_to=rows[0]["back_to"]
        )


def audit_entry(
    what: str,
    target: str,
    action: OperatorAction,
    detail: Mapping[str, object] | None = None,
    half_id: HalfId | None = None,
) -> tuple[LiteralString, dict[str, object]]:
    """Return the statement that appends an intervention, with its parameters.

    The caller executes it in the transaction of the intervention.
    """
    return SQL["audit"], {
        **asdict(action),
        "action": what,
        "target": target,
        "half_id": half_id,
        "detail": None if detail is None else Jsonb(dict(detail)),
    }
