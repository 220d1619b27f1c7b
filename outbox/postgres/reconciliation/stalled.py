"""Reads what makes no progress, in the snapshot of the reconciliation. Bounded; nothing is locked.

All times are compared with the time of the snapshot, because a run may read minutes after it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from psycopg.rows import dict_row

from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.stalled import (
    ParkedGroup,
    SilentGroup,
    Stalled,
    StalledHalf,
    StalledTransaction,
)

SQL: Final = load(__name__)


def read_stalled(
    connection: Connection, at: datetime, primary: Connection | None = None
) -> Stalled:
    """Return what makes no progress in the snapshot that was taken ``at``.

    Transactions are read on the primary, because a replica does not know its sessions.
    """

    def rows(name: str, reader: Connection | None = None) -> list[dict[str, Any]]:
        with (reader or connection).cursor(row_factory=dict_row) as cursor:
            return cursor.execute(SQL[name], {"at": at}).fetchall()

    return Stalled(
        parked=tuple(ParkedGroup(**row) for row in rows("parked")),
        halves=tuple(StalledHalf(**row) for row in rows("halves")),
        silent=tuple(SilentGroup(**row) for row in rows("silent")),
        transactions=tuple(StalledTransaction(**row) for row in rows("transactions", primary)),
    )
