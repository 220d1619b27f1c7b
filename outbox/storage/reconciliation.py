"""The reconciliation's side of PostgreSQL: one snapshot to read from, and where runs are kept.

One thread. The snapshot's transaction is read-only and takes no xid, so it holds up no relay; the
message tables are never written from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from outbox.errors import DatabaseUnavailable
from outbox.message_id import HalfId, message_id_of
from outbox.reconciliation import (
    Chain,
    Changes,
    FindingStatus,
    Gone,
    Hold,
    JdbcAddress,
    KnownHalf,
    Look,
    PastRun,
    RecordedPlace,
    RelayCut,
    RunBefore,
    SnapshotIdentity,
    StoredRun,
    Undecided,
)
from outbox.storage.codes import DECIDED_BY_OF_CODE, DECISION_OF_CODE
from outbox.storage.connections import Connection, connect
from outbox.storage.half_rows import read_half
from outbox.storage.jdbc import jdbc_address
from outbox.storage.reconciliation_chain import (
    hold_chain,
    keep_chain,
    move_chain,
    read_chain,
)
from outbox.storage.reconciliation_findings import (
    forget_closed,
    read_accepted,
    read_changes,
    read_open_below,
    read_resolved_between_runs,
    read_statuses,
    save_findings,
    settle_findings,
)
from outbox.storage.replica import await_replay
from outbox.storage.statements import load
from outbox.storage.stuck import read_stuck
from outbox.stuck import Stuck

SQL: Final = load("reconciliation")
KEEP_DAYS: Final = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a run may burden PostgreSQL, in seconds; beyond that it fails and stores nothing."""

    snapshot_seconds: int = 3600
    statement_seconds: int = 600


PATIENT: Final = Patience()
AWAY: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
)
"""What a server says that cannot be asked any more; the last two end the session as well."""
Tallies = Mapping[str, Mapping[str, int]]
"""How many findings were new and resolved, each by kind."""


class PostgresSource:
    """The ReconciliationSource on one database, or on a replica of it."""

    def __init__(
        self, database_url: str, replica_url: str | None = None, patience: Patience = PATIENT
    ) -> None:
        self._database_url = database_url
        self._replica_url = replica_url
        self._patience = patience
        self.jdbc: JdbcAddress = jdbc_address(database_url)
        if replica_url is not None:
            self.jdbc = jdbc_address(replica_url, "OUTBOX_RECONCILE_REPLICA_URL")

    def topics(self) -> Sequence[str]:
        """Return every interned topic."""
        with _session(self._database_url) as connection:
            return [name for (name,) in connection.execute(SQL["topics"])]

    def unlisted(self) -> Sequence[RelayCut]:
        """Return how far each shard has come whose newest batches no manifest lists."""
        with _session(self._database_url) as connection:
            return [RelayCut(*row) for row in connection.execute(SQL["unlisted"])]

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Export a snapshot; it lives as long as the block. Raises ReplicaUnfit."""
        with _session(self._replica_url or self._database_url, self._patience) as connection:
            taken_at = self._await_replay(connection)
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                row = connection.execute(SQL["export_snapshot"]).fetchone()
                assert row is not None
                identity = SnapshotIdentity(
                    exported_id=row[0], visible=row[1], taken_at=taken_at or row[2]
                )
                primary_url = self._database_url if self._replica_url else None
                yield PostgresSnapshot(connection, identity, primary_url)

    def _await_replay(self, connection: Connection) -> datetime | None:
        """Wait until a replica has all that is committed; return when that was."""
        if self._replica_url is None:
            return None
        with _session(self._database_url) as primary:
            return await_replay(primary, connection)


class PostgresSnapshot:
    """The SourceSnapshot on the very session that exported it."""

    def __init__(
        self, connection: Connection, identity: SnapshotIdentity, primary_url: str | None
    ) -> None:
        self._connection = connection
        self._primary_url = primary_url
        self.identity = identity

    def retired_below(self) -> HalfId:
        """Return the lowest half id whose leaf is still attached."""
        return HalfId(self._only_row("retired_below")[0])

    def undecided(self, *, whole: bool = True) -> Undecided:
        """Count the half messages without a decision; see SourceSnapshot.undecided."""
        prepared, parked = self._only_row("undecided" if whole else "undecided_ahead")
        return Undecided(prepared=prepared, parked=parked)

    def stuck(self) -> Stuck:
        """Return what does not move on; see SourceSnapshot.stuck."""
        taken_at = self.identity.taken_at
        if self._primary_url is None:
            with _available():
                return read_stuck(self._connection, taken_at)
        with _session(self._primary_url) as primary:
            return read_stuck(self._connection, taken_at, primary)

    def halves(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, KnownHalf]:
        """Return the known half messages by id."""
        return {row["half_id"]: _known_half(row) for row in self._by_ids("halves", half_ids)}

    def holds(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, Hold]:
        """Return the held records by id."""
        return {row.pop("half_id"): Hold(**row) for row in self._by_ids("holds", half_ids)}

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[UUID]:
        """Return the message ids that Kafka had and this database had forgotten."""
        rows = self._by_ids("already_published", half_ids)
        return frozenset(message_id_of(row["half_id"], row["nonce"]) for row in rows)

    def places(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, RecordedPlace]:
        """Return where the relay recorded that the records are."""
        rows = self._by_ids("places", half_ids)
        return {row.pop("half_id"): RecordedPlace(**row) for row in rows}

    def _only_row(self, name: str) -> tuple[Any, ...]:
        with _available():
            row: tuple[Any, ...] | None = self._connection.execute(SQL[name]).fetchone()
        assert row is not None
        return row

    def _by_ids(self, name: str, half_ids: Sequence[HalfId]) -> list[dict[str, Any]]:
        if not half_ids:
            return []
        asked = {"half_ids": list(half_ids), "low": min(half_ids), "high": max(half_ids)}
        with _available(), self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(SQL[name], asked).fetchall()


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


@contextmanager
def _session(database_url: str, patience: Patience = PATIENT) -> Iterator[Connection]:
    """Open a connection whose transaction and statements last so long at most.

    Before PostgreSQL 17 a transaction is bounded only while it is idle.
    """
    with _available(), connect(database_url, "reconcile") as connection:
        for setting, seconds in (
            ("idle_in_transaction_session_timeout", patience.snapshot_seconds),
            ("transaction_timeout", patience.snapshot_seconds),
            ("statement_timeout", patience.statement_seconds),
        ):
            connection.execute(SQL["set_timeout"], {"name": setting, "value": f"{seconds}s"})
        yield connection


@contextmanager
def _available() -> Iterator[None]:
    """Turn a broken connection or a refusing server into DatabaseUnavailable."""
    try:
        yield
    except AWAY as error:
        raise DatabaseUnavailable(f"PostgreSQL: {str(error).splitlines()[0]}") from error


def _known_half(row: Mapping[str, Any]) -> KnownHalf:
    if row["decision"] is None:
        return KnownHalf(half=read_half(row), parked=row["parked"])
    return KnownHalf(
        half=read_half(row),
        parked=False,
        decision=DECISION_OF_CODE[row["decision"]],
        decided_by=DECIDED_BY_OF_CODE[row["decided_by"]],
        decided_at=row["decided_at"],
    )


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
