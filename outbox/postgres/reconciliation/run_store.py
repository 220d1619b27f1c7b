"""The tables that keep runs, findings and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.postgres.reconciliation.audit_session import audit_session
from outbox.postgres.reconciliation.findings import (
    delete_old_findings,
    read_accepted,
    read_changes,
    read_missing,
    read_open_below,
    read_remaining,
    read_statuses,
    save_findings,
    save_rerun_result,
)
from outbox.postgres.reconciliation.finished_runs import finished_run
from outbox.postgres.reconciliation.stored_checkpoint import (
    lock_checkpoint,
    lock_runs,
    read_checkpoint,
    update_checkpoint,
)
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.checkpoint import StoredCheckpoint
from outbox.reconciliation.finding import FindingChanges, FindingOutcome, StoredFinding
from outbox.reconciliation.run import ExpiredEvidence, FinishedRun, RerunResult, StoredRun

SQL: Final = load(__name__)
KEEP_DAYS: Final = 90


class PostgresRunStore:
    """The RunStore on the same database; one connection per call, one transaction per run.

    Findings are deleted ``keep_days`` after they were closed.
    """

    def __init__(self, database_url: str, keep_days: int = KEEP_DAYS) -> None:
        self._database_url = database_url
        self._keep_days = keep_days

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Hold the lock on a separate session, which ends with this process; see RunStore."""
        with audit_session(self._database_url) as connection:
            lock_runs(connection)
            yield

    def checkpoint(self) -> StoredCheckpoint | None:
        """Return where the last run ended and what it left open, in one snapshot."""
        with audit_session(self._database_url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                return read_checkpoint(connection)

    def changes(
        self, finding_ids: Sequence[str], complete: bool, expired_evidence: ExpiredEvidence
    ) -> FindingChanges:
        """Return what saving these open findings would change; see RunStore.changes."""
        with audit_session(self._database_url) as connection:
            return read_changes(connection, finding_ids, complete, expired_evidence)

    def remaining(
        self, finding_ids: Sequence[str], expired_evidence: ExpiredEvidence
    ) -> Sequence[StoredFinding]:
        """Return the findings that stay open though no run can see them; see RunStore."""
        with audit_session(self._database_url) as connection:
            return read_remaining(connection, finding_ids, expired_evidence)

    def open_below(self, half_id: HalfId) -> Sequence[HalfId]:
        """Return messages with a finding that may exist longer than they; see RunStore."""
        with audit_session(self._database_url) as connection:
            return read_open_below(connection, half_id)

    def missing(self, finding_ids: Sequence[str]) -> Sequence[HalfId]:
        """Return the messages with other open findings of the kind missing; see RunStore."""
        with audit_session(self._database_url) as connection:
            return read_missing(connection, finding_ids)

    def accepted(self) -> frozenset[str]:
        """Return the accepted findings; see RunStore.accepted."""
        with audit_session(self._database_url) as connection:
            return read_accepted(connection)

    def statuses(self, run_id: str) -> Sequence[FindingOutcome] | None:
        """Return the current status of a run's findings; see RunStore.statuses."""
        with audit_session(self._database_url) as connection:
            return read_statuses(connection, run_id)

    def past(self, run_id: str, limit: int) -> Sequence[FinishedRun]:
        """Return the newest other runs; see RunStore.past."""
        asked = {"run_id": run_id, "limit": limit}
        with (
            audit_session(self._database_url) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            rows = cursor.execute(SQL["past"], asked).fetchall()
        return [finished_run(row) for row in reversed(rows)]

    def log_state(self) -> Mapping[str, Any] | None:
        """Return what the newest run stored about the log; see RunStore.log_state."""
        with audit_session(self._database_url) as connection:
            row = connection.execute(SQL["log_state"]).fetchone()
        return None if row is None else row[0]

    def save(self, run: StoredRun) -> None:
        """Store the run, findings, reports and checkpoint in one transaction; see RunStore.save."""
        with audit_session(self._database_url) as connection, connection.transaction():
            if run.checkpoint is not None:
                update_checkpoint(connection, run.run_id, run.checkpoint)
            save_findings(connection, run)
            connection.execute(SQL["save_run"], _run_row(run))
            for form, body in run.reports.items():
                report = {"run_id": run.run_id, "format": form, "body": body}
                connection.execute(SQL["save_report"], report)
            connection.execute(SQL["delete_old_reports"])
            delete_old_findings(connection, self._keep_days)

    def save_rerun(self, result: RerunResult) -> None:
        """Store the new status of some findings, and nothing else; see RunStore.save_rerun."""
        with audit_session(self._database_url) as connection, connection.transaction():
            lock_checkpoint(connection, result.after)
            save_rerun_result(connection, result)


def _run_row(run: StoredRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "previous_run_id": run.previous_run_id,
        "mode": run.mode,
        "started_at": run.started_at,
        "cut_at": run.cut_at,
        "verdict": run.verdict,
        "sentence": run.sentence,
        "complete": run.complete,
        "plan": Jsonb(dict(run.plan)),
        "counts": Jsonb(dict(run.counts)),
        "totals": Jsonb(dict(run.totals)),
        "timings": Jsonb(dict(run.timings)),
    }
