"""The checkpoint between two runs, on a connection of the run store.

The checkpoint is replaced in the transaction that stores the run, and only if no other run has
replaced it since. This condition alone makes runs safe. The lock of the runs only prevents work
that could not be stored.
"""

from __future__ import annotations

from typing import Final

from psycopg.types.json import Jsonb

from outbox.errors import DatabaseUnavailable, RunOvertaken, RunUnderWay
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.checkpoint import CarriedRow, CheckpointUpdate, StoredCheckpoint

SQL: Final = load(__name__)
READ_ONLY: Final = (
    "PostgreSQL: this session is read-only, so no run can be stored: it is a standby, or"
    " default_transaction_read_only is on for the role, the database or the server"
)


def lock_runs(connection: Connection) -> None:
    """Take the lock of the runs until the connection is closed.

    Raises RunUnderWay when another run has it, and DatabaseUnavailable where no run can be stored.
    """
    row = connection.execute(SQL["lock_runs"]).fetchone()
    if row is None or not row[0]:
        raise RunUnderWay
    if row[2]:
        raise DatabaseUnavailable(READ_ONLY)


def read_checkpoint(connection: Connection) -> StoredCheckpoint | None:
    """Return the last checkpoint; the transaction of the caller makes both reads consistent."""
    row = connection.execute(SQL["checkpoint"]).fetchone()
    if row is None:
        return None
    carried = [CarriedRow(*each) for each in connection.execute(SQL["carried"])]
    return StoredCheckpoint(run_id=row[0], cut=row[1], carried=tuple(carried))


def lock_checkpoint(connection: Connection, after: str | None) -> None:
    """Lock the checkpoint of the run ``after`` until the transaction ends.

    Raises RunOvertaken when another run has replaced it.
    """
    row = connection.execute(SQL["cut_run_id"]).fetchone()
    if (row[0] if row else None) != after:
        raise RunOvertaken


def update_checkpoint(connection: Connection, run_id: str, update: CheckpointUpdate) -> None:
    """Replace the checkpoint. Raises RunOvertaken, and then has changed nothing."""
    cut = None if update.cut is None else Jsonb(dict(update.cut))
    asked = {"run_id": run_id, "cut": cut, "after": update.after}
    if not connection.execute(SQL["update_cut"], asked).rowcount:
        raise RunOvertaken
    connection.execute(SQL["delete_carried"])
    with connection.cursor() as cursor, cursor.copy(SQL["carry"]) as copy:
        for row in update.carried:
            copy.write_row(row)
    for shard, (xid, n) in update.positions.items():
        connection.execute(SQL["note_audited"], {"shard": shard, "xid": xid, "n": n})
