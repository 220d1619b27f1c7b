"""Reads what does not move on, in the reconciliation's snapshot. Bounded, and nothing is locked.

Everything is measured from the moment of the snapshot: a run may ask minutes after it.
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

SQL: Final = load("outbox.postgres.reconciliation.stalled")


def read_stalled(
    connection: Connection, at: datetime, primary: Connection | None = None
) -> Stalled:
    """Return what does not move on, as of the snapshot that was taken ``at``.

    Transactions are read on the primary: a replica knows none of its sessions.
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
