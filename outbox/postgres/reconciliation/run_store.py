"""Where runs, findings and reports are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.postgres.reconciliation.findings import (
    forget_closed,
    read_accepted,
    read_changes,
    read_open_below,
    read_resolved_between_runs,
    read_statuses,
    save_findings,
    settle_findings,
)
from outbox.postgres.reconciliation.source import SQL, _session
from outbox.postgres.reconciliation.stored_checkpoint import (
    hold_chain,
    keep_chain,
    move_chain,
    read_chain,
)
from outbox.postgres.sessions.connections import Connection
from outbox.reconciliation.stored_run import (
    Chain,
    Changes,
    FindingStatus,
    Gone,
    Look,
    PastRun,
    RunBefore,
    StoredRun,
)

KEEP_DAYS: Final = 90


Tallies = Mapping[str, Mapping[str, int]]
"""How many findings were new and resolved, each by kind."""


class PostgresRunStore:
    """The RunStore on the same database; one connection a call, one transaction a run.

    Findings are forgotten ``keep_days`` after they were closed.
    """

    def __init__(self, database_url: str, keep_days: int = KEEP_DAYS) -> None:
        self._database_url = database_url
        self._keep_days = keep_days

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the chain on a session of its own, which ends with this process; see RunStore."""
        with _session(self._database_url) as connection:
            hold_chain(connection)
            yield

    def chain(self) -> Chain | None:
        """Return where the last run ended and what it left open, as of one moment."""
        with _session(self._database_url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                return read_chain(connection)

    def changes(self, finding_ids: Sequence[str], complete: bool, gone: Gone) -> Changes:
        """Tell how these open findings differ from the stored ones."""
        with _session(self._database_url) as connection:
            return read_changes(connection, finding_ids, complete, gone)

    def open_below(self, half_id: HalfId) -> Sequence[HalfId]:
        """Return messages with a finding that may outlive them; see RunStore.open_below."""
        with _session(self._database_url) as connection:
            return read_open_below(connection, half_id)

    def accepted(self) -> frozenset[str]:
        """Return the accepted findings; see RunStore.accepted."""
        with _session(self._database_url) as connection:
            return read_accepted(connection)

    def statuses(self, run_id: str) -> Sequence[FindingStatus] | None:
        """Return what has become of a run's findings; see RunStore.statuses."""
        with _session(self._database_url) as connection:
            return read_statuses(connection, run_id)

    def past(self, run_id: str, limit: int) -> Sequence[PastRun]:
        """Return the newest other runs; see RunStore.past."""
        asked = {"run_id": run_id, "limit": limit}
        with _session(self._database_url) as connection:
            rows = connection.execute(SQL["past"], asked).fetchall()
        return [
            PastRun(run_id=row[0], finished_at=row[1], verdict=row[2], open=row[3])
            for row in reversed(rows)
        ]

    def log_state(self) -> Mapping[str, Any] | None:
        """Return what the newest run left behind of the log; see RunStore.log_state."""
        with _session(self._database_url) as connection:
            row = connection.execute(SQL["log_state"]).fetchone()
        return None if row is None else row[0]

    def before(self, run_id: str, finding_ids: Sequence[str]) -> RunBefore | None:
        """Return the newest other run; see RunStore.before."""
        asked = {"run_id": run_id, "finding_ids": list(finding_ids)}
        with _session(self._database_url) as connection:
            row = connection.execute(SQL["before"], asked).fetchone()
        if row is None:
            return None
        return RunBefore(run_id=row[0], verdict=row[1], open_before=frozenset(row[2]))

    def save(self, run: StoredRun) -> None:
        """Store the run, its findings, reports and cut in one transaction; see RunStore.save."""
        with _session(self._database_url) as connection, connection.transaction():
            if run.step is not None:
                move_chain(connection, run.run_id, run.step)
            ever = _ever(connection, save_findings(connection, run))
            connection.execute(SQL["save_run"], _run_row(run, ever))
            for kind, body in run.reports.items():
                report = {"run_id": run.run_id, "format": kind, "body": body}
                connection.execute(SQL["save_report"], report)
            connection.execute(SQL["forget_reports"])
            forget_closed(connection, self._keep_days)

    def settle(self, look: Look) -> None:
        """Store what some findings have become, and nothing else; see RunStore.settle."""
        with _session(self._database_url) as connection, connection.transaction():
            keep_chain(connection, look.after)
            settle_findings(connection, look)


def _ever(connection: Connection, now: Tallies) -> Tallies:
    """Add what this run found new and resolved to what all runs and reruns before did, by kind."""
    before, last_event = connection.execute(SQL["ever"]).fetchone() or ({}, 0)
    between = {"resolved": read_resolved_between_runs(connection, last_event)}
    tallies: Sequence[Tallies] = (before, between, now)
    return {what: sum((Counter(each.get(what, {})) for each in tallies), Counter()) for what in now}


def _run_row(run: StoredRun, ever: Tallies) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "previous_run_id": run.previous_run_id,
        "mode": run.mode,
        "started_at": run.started_at,
        "cut_at": run.cut_at,
        "verdict": run.verdict,
        "sentence": run.sentence,
        "complete": run.complete,
        "plan": Jsonb({**run.plan, "ever": ever}),
        "counts": Jsonb(dict(run.counts)),
        "totals": Jsonb(dict(run.totals)),
        "timings": Jsonb(dict(run.timings)),
    }
