"""Reads what makes no progress, in the snapshot of the reconciliation. Bounded; nothing is locked.

All times are compared with the time of the snapshot, because a run may read minutes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from psycopg.rows import class_row

from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.snapshot import Stalled

SQL: Final = load(__name__)


def read_stalled(
    connection: Connection, at: datetime, primary: Connection | None = None
) -> Sequence[Stalled]:
    """Return what makes no progress in the snapshot that was taken ``at``.

    Transactions are read on the primary, because a replica does not know its sessions.
    """
    readers = {"waiting": connection, "parked": connection, "transactions": primary or connection}
    found: list[Stalled] = []
    for name, reader in readers.items():
        with reader.cursor(row_factory=class_row(Stalled)) as cursor:
            found += cursor.execute(SQL[name], {"at": at})
    return found
