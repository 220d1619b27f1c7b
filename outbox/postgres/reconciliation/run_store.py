"""The tables that keep runs, findings, reports, and the checkpoint between two runs.

The checkpoint is replaced in the transaction that stores the run, and only if no other run has
replaced it since. This condition alone makes runs safe. The lock of the runs only prevents work
that could not be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from outbox.errors import DatabaseUnavailable, RunOvertaken
from outbox.postgres.reconciliation.audit_session import audit_session
from outbox.postgres.reconciliation.findings import PostgresFindings, save_findings
from outbox.postgres.reconciliation.finished_runs import SQL as RUNS
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.run import (
    CheckpointUpdate,
    FinishedRun,
    StoredCheckpoint,
    StoredRun,
)

SQL: Final = load(__name__)
READ_ONLY: Final = (
    "PostgreSQL: this session is read-only, so no run can be stored: it is a standby, or"
    " default_transaction_read_only is on for the role, the database or the server"
)


class PostgresRunStore(PostgresFindings):
    """Keeps runs, findings and reports; writes to no other table."""

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Prevent other runs until the block ends or this process dies, by a session of its own.

        Raises RunOvertaken when another run has the lock, and DatabaseUnavailable, also where no
        run can be stored.
        """
        with audit_session(self._database_url) as connection:
            row = connection.execute(SQL["lock_runs"]).fetchone()
            if row is None or not row[0]:
                raise RunOvertaken("another run is in progress; nothing was started")
            if row[2]:
                raise DatabaseUnavailable(READ_ONLY)
            yield

    def checkpoint(self) -> StoredCheckpoint | None:
        """Return where the last run ended; None before the first run.

        Raises DatabaseUnavailable.
        """
        with audit_session(self._database_url) as connection:
            row = connection.execute(SQL["checkpoint"]).fetchone()
        return None if row is None else StoredCheckpoint(run_id=row[0], cut=row[1])

    def past(self, limit: int) -> Sequence[FinishedRun]:
        """Return the newest runs, oldest first."""
        asked = {"run_id": None, "after": "", "limit": limit}
        with (
            audit_session(self._database_url) as connection,
            connection.cursor(row_factory=class_row(FinishedRun)) as cursor,
        ):
            return cursor.execute(RUNS["runs"], asked).fetchall()[::-1]

    def save(self, run: StoredRun) -> None:
        """Store a run and its findings in one transaction; saving it again changes nothing.

        Raises RunOvertaken when another run has stored its cut meanwhile; then nothing is stored.
        """
        with audit_session(self._database_url) as connection, connection.transaction():
            if run.checkpoint is not None:
                _update_checkpoint(connection, run.run_id, run.checkpoint)
            save_findings(connection, run)
            row = {k: Jsonb(v) if isinstance(v, Mapping) else v for k, v in run.row.items()}
            connection.execute(SQL["save_run"], {"run_id": run.run_id, **row})
            for form, body in run.reports.items():
                report = {"run_id": run.run_id, "format": form, "body": body}
                connection.execute(SQL["save_report"], report)
            connection.execute(SQL["delete_old_reports"])


def _update_checkpoint(connection: Connection, run_id: str, update: CheckpointUpdate) -> None:
    """Replace the checkpoint. Raises RunOvertaken, and then has changed nothing."""
    asked = {"run_id": run_id, "cut": Jsonb(dict(update.cut)), "after": update.after}
    if not connection.execute(SQL["update_cut"], asked).rowcount:
        raise RunOvertaken
    for shard, (xid, n) in update.positions.items():
        connection.execute(SQL["note_audited"], {"shard": shard, "xid": xid, "n": n})
