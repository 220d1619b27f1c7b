"""Reads what does not move on, in the reconciliation's snapshot. Bounded, and nothing is locked.

Everything is measured from the moment of the snapshot: a run may ask minutes after it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from psycopg.rows import dict_row

from outbox.storage.connections import Connection
from outbox.storage.statements import load
from outbox.stuck import ParkedGroup, SilentGroup, StalledTransaction, Stuck, StuckHalf

SQL: Final = load("stuck")


def read_stuck(connection: Connection, at: datetime, primary: Connection | None = None) -> Stuck:
    """Return what does not move on, as of the snapshot that was taken ``at``.

    Transactions are read on the primary: a replica knows none of its sessions.
    """

    def rows(name: str, reader: Connection | None = None) -> list[dict[str, Any]]:
        with (reader or connection).cursor(row_factory=dict_row) as cursor:
            return cursor.execute(SQL[name], {"at": at}).fetchall()

    return Stuck(
        parked=tuple(ParkedGroup(**row) for row in rows("parked")),
        halves=tuple(StuckHalf(**row) for row in rows("halves")),
        silent=tuple(SilentGroup(**row) for row in rows("silent")),
        transactions=tuple(StalledTransaction(**row) for row in rows("transactions", primary)),
    )
