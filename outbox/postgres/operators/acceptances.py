"""Accepts a finding until a given time, audited; see Acceptances."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from outbox.errors import TimePast
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.audit_log import audit
from outbox.postgres.sessions.availability import available
from outbox.reconciliation.finding import UNREAD_CLASSES

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

IS_PAST: Final = "SELECT %s <= clock_timestamp()"
ACCEPT: Final = """
WITH accepted AS (
    UPDATE outbox.reconciliation_finding
    SET status = 'accepted', accepted_until = %(until)s, updated_at = clock_timestamp()
    WHERE finding_id = %(finding_id)s AND status IN ('open', 'accepted')
        AND class <> ALL (%(unread)s::text[])
    RETURNING finding_id, half_id, class, severity, status
), noted AS (
    INSERT INTO outbox.reconciliation_finding_event (finding_id, event, class, severity, status)
    SELECT finding_id, 'accepted', class, severity, status FROM accepted
)
SELECT half_id, class FROM accepted
"""
"""Accepts a finding that is open, or accepted until another time, with an event of its history."""


class PostgresAcceptances:
    """The Acceptances on a pool of connections."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def accept(self, finding_id: str, until: datetime, action: OperatorAction) -> bool:
        """Accept a finding; see Acceptances.accept."""
        asked = {"finding_id": finding_id, "until": until, "unread": sorted(UNREAD_CLASSES)}
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            [(past,)] = await (await connection.execute(IS_PAST, [until])).fetchall()
            if past:
                raise TimePast
            row = await (await connection.execute(ACCEPT, asked)).fetchone()
            if row is None:
                return False
            detail = {"class": row[1], "until": until.isoformat()}
            await audit(connection, "finding.accept", finding_id, row[0], action, detail)
        return True
