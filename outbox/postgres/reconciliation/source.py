"""The database that a run audits, read in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from outbox.messages.manifest import Position
from outbox.messages.message_id import HalfId, message_id_of
from outbox.postgres.messages.half_rows import bounds, read_half, read_if_whole
from outbox.postgres.reconciliation.audit_session import audit_session, database_errors
from outbox.postgres.schema.codes import DECIDED_BY_OF_CODE, DECISION_OF_CODE
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.jdbc import jdbc_address
from outbox.postgres.sessions.standby import await_replay
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.snapshot import (
    ChangedCommit,
    JdbcAddress,
    KnownHalf,
    LoggedCommit,
    RecordedPlace,
    RecordHold,
    RelayCut,
    RelayProgress,
    SnapshotIdentity,
    UndecidedCounts,
)

SQL: Final = load(__name__)


class PostgresSource:
    """The database that a run audits, or a replica of it. Methods raise DatabaseUnavailable."""

    def __init__(
        self,
        database_url: str,
        replica_url: str | None = None,
    ) -> None:
        self._database_url = database_url
        self._replica_url = replica_url
        self.jdbc: JdbcAddress = jdbc_address(database_url)
        if replica_url is not None:
            self.jdbc = jdbc_address(replica_url, "OUTBOX_RECONCILE_REPLICA_URL")

    def topics(self) -> Sequence[str]:
        """Return every topic that a message was ever prepared for."""
        with audit_session(self._database_url) as connection:
            return [name for (name,) in connection.execute(SQL["topics"])]

    def installation_id(self) -> UUID:
        """Return the id of the installation that the database belongs to."""
        with audit_session(self._database_url) as connection:
            [(installation,)] = connection.execute(SQL["installation_id"])
        assert isinstance(installation, UUID)
        return installation

    def listed(self) -> Sequence[RelayCut]:
        """Return the position and the last manifest of each shard that has published."""
        with audit_session(self._database_url) as connection:
            return [RelayCut(*row) for row in connection.execute(SQL["listed"])]

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Export a snapshot that exists until the block ends, and every leaf with it."""
        read_url = self._replica_url or self._database_url
        with (
            audit_session(read_url) as connection,
            self._primary(connection) as primary,
        ):
            primary.execute(SQL["keep_leaves"])
            taken_at = None if primary is connection else await_replay(primary, connection)
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                row = connection.execute(SQL["export_snapshot"]).fetchone()
                assert row is not None
                identity = SnapshotIdentity(
                    exported_id=row[0], visible=row[1], taken_at=taken_at or row[2]
                )
                yield PostgresSnapshot(connection, identity)
            if primary is not connection:
                primary.execute(SQL["release_leaves"])

    def _primary(self, connection: Connection) -> AbstractContextManager[Connection]:
        """Open the session that keeps the leaves; without a replica it is the snapshot's own."""
        if self._replica_url is None:
            return nullcontext(connection)
        return audit_session(self._database_url)


class PostgresSnapshot:
    """The outbox's tables at one instant; open while Spark reads them with the same snapshot.

    Its methods run on the session that exported it, and raise DatabaseUnavailable.
    """

    def __init__(self, connection: Connection, identity: SnapshotIdentity) -> None:
        self._connection = connection
        self.identity = identity

    def retired_below(self) -> HalfId:
        """Return the lowest half id whose leaf is still kept."""
        [(half_id,)] = self._rows("retired_below")
        return HalfId(half_id)

    def retired_leaves(self) -> frozenset[int]:
        """Return the leaves above that which were removed before a lower one."""
        return frozenset(leaf for (leaf,) in self._rows("retired_leaves"))

    def relay_progress(self) -> Mapping[int, RelayProgress]:
        """Return by shard how far its relay had come, and may have come."""
        return {row[0]: RelayProgress(*row[1:]) for row in self._rows("relay_progress")}

    def commits(self, after: Mapping[int, Position], most: int) -> Sequence[LoggedCommit] | None:
        """Return the commits after a position of each shard, in order; None if more than ``most``.

        Of rows with too few digests, the last commits have none.
        """
        asked = {"shards": list(after), "xids": [each.xid for each in after.values()]}
        found: list[LoggedCommit] = []
        with database_errors(), self._connection.cursor("commits") as cursor:
            for shard, xid, at, half_ids, digests in cursor.execute(SQL["commits"], asked):
                places = enumerate(zip_longest(half_ids, digests[: len(half_ids)]), 1)
                found += (
                    LoggedCommit(shard, xid, n, at, *each)
                    for n, each in places
                    if (xid, n) > after[shard]
                )
                if len(found) > most:
                    return None
        return found

    def committed(self, spans: Mapping[int, tuple[Position, Position]]) -> Sequence[dict[str, Any]]:
        """Count the commits after the first position of each shard by topic and producer group.

        ``committed`` are those up to the second position, ``lag`` are those above it.
        """
        (first, last), names = zip(*spans.values(), strict=True), ("from_xids", "from_ns")
        columns = (*zip(*first, strict=True), *zip(*last, strict=True))
        positions = dict(zip((*names, "xids", "ns"), map(list, columns), strict=True))
        asked = {"shards": list(spans), **positions}
        with database_errors(), self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(SQL["committed"], asked).fetchall()

    def undecided(self) -> UndecidedCounts:
        """Count the half messages without a decision, by the cursors of the checks."""
        [counts] = self._rows("undecided")
        return UndecidedCounts(*counts)

    def unlogged(
        self, since: datetime | None = None, before: int | None = None
    ) -> frozenset[HalfId]:
        """Return at most 1 000 messages that were decided COMMIT and are not in the commit log.

        They are sought among those that were prepared after the newest commit before ``since`` and
        below the transaction id ``before``, or among all that are kept.
        """
        return self._unlogged("unlogged", **self._kept(since, before))

    def unlogged_among(self, half_ids: Sequence[HalfId]) -> frozenset[HalfId]:
        """Return those of the messages that were decided COMMIT and are not in the commit log."""
        if not half_ids:
            return frozenset()
        return self._unlogged("unlogged_among", half_ids=list(half_ids), **self._retired())

    def _unlogged(self, name: str, **asked: Any) -> frozenset[HalfId]:
        return frozenset(half_id for (half_id,) in self._rows(name, **asked))

    def changed(
        self, since: datetime | None = None, before: int | None = None
    ) -> Sequence[ChangedCommit]:
        """Return at most 1 000 commits whose decision or half message is not what it was.

        They are sought among the commits from the newest one before ``since`` and below the
        transaction id ``before`` on, or among all that are kept.
        """
        rows = self._rows("changed", **self._kept(since, before))
        known = ([*row, DECISION_OF_CODE.get(decision)] for *row, decision in rows)
        return [ChangedCommit(*each) for each in known]

    def _kept(self, since: datetime | None, before: int | None) -> dict[str, Any]:
        """Return the parameters of what was prepared or committed from then on, and is kept."""
        [(low,)] = self._rows("prepared_since", since=since, before=before)
        return {"low": low, **self._retired()}

    def _retired(self) -> dict[str, Any]:
        return {"retired_below": self.retired_below(), "retired": sorted(self.retired_leaves())}

    def halves(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, KnownHalf]:
        """Return those of at most 10 000 half messages that are known."""
        return {row["half_id"]: _known_half(row) for row in self._by_ids("halves", half_ids)}

    def held_records(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, RecordHold]:
        """Return those of the messages that are or were held records."""
        return {
            row.pop("half_id"): RecordHold(**row) for row in self._by_ids("held_records", half_ids)
        }

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[UUID]:
        """Return the message ids that Kafka had and this database had lost."""
        rows = self._by_ids("already_published", half_ids)
        return frozenset(message_id_of(row["half_id"], row["nonce"]) for row in rows)

    def recorded_places(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, RecordedPlace]:
        """Return the partition and offset of each record, as the relay recorded them."""
        rows = self._by_ids("recorded_places", half_ids)
        return {row.pop("half_id"): RecordedPlace(**row) for row in rows}

    def _rows(self, name: str, **asked: Any) -> list[tuple[Any, ...]]:
        with database_errors():
            return self._connection.execute(SQL[name], asked).fetchall()

    def _by_ids(self, name: str, half_ids: Sequence[HalfId]) -> list[dict[str, Any]]:
        if not half_ids:
            return []
        asked = {"half_ids": list(half_ids), **bounds(half_ids)}
        with database_errors(), self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(SQL[name], asked).fetchall()


def _known_half(row: Mapping[str, Any]) -> KnownHalf:
    """Return a half with its decision; one whose headers are damaged has none of them."""
    return KnownHalf(
        half=read_if_whole(row) or read_half({**row, "headers": None}),
        parked=row["parked"],
        decision=DECISION_OF_CODE.get(row["decision"]),
        decided_by=DECIDED_BY_OF_CODE.get(row["decided_by"]),
        decided_at=row["decided_at"],
    )
