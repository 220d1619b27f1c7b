"""One shard of the commit log: its lock, its progress row and its committed messages in order.

One session does all of it, for one thread; when the session breaks, nothing that was read is valid.
The lock is for liveness only: the fence in Kafka makes a second relay harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import UUID

import psycopg

from outbox.errors import CursorMoved, DatabaseUnavailable
from outbox.messages.manifest import HELD, Entry, Kind, Manifest, Position
from outbox.messages.message_id import HalfId, split_message_id
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.relay import held_records
from outbox.postgres.relay.commit_reader import CommitReader
from outbox.postgres.relay.recovery import recover_published
from outbox.postgres.sessions.availability import unavailable
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.statements import load
from outbox.relay.ports import PublishedBatch
from outbox.relay.protocol.answers import Commits, Compared, Places
from outbox.relay.protocol.state import Cursor, HaltReason, Identity, Progress, Refusal

SQL: Final = load(__name__)
LOCK_SPACE: Final = 0x6F757462
"""The first key of the relay's advisory locks; the second key is the shard."""
GONE: Final = b""
"""The id of a message whose half is gone: no manifest has it."""
COMPARISONS: Final = 3
"""In SQL mode a producer's transaction that is just ending may lower the watermark for a moment."""


class PostgresCommitLog:
    """The lock, the progress, the commits and the held records of one shard, on one session.

    Methods raise DatabaseUnavailable when the session is lost; their results are void then.
    """

    def __init__(
        self,
        database_url: str,
        shard: int,
        *,
        batch_max: int,
        owner: str,
        connect: Callable[[str, str], Connection] = connect,
    ) -> None:
        self._url = database_url
        self._shard = shard
        self._reader = CommitReader(shard, batch_max=batch_max)
        self._owner = owner
        self._connect = connect
        self._connection: Connection | None = None

    # -- The lock ---------------------------------------------------------------------------------

    def try_lock(self) -> bool:
        """Open the session if necessary and ask for the shard's lock without waiting."""
        with self._session() as session:
            asked = {"space": LOCK_SPACE, "shard": self._shard}
            row = session.execute(SQL["try_lock"], asked).fetchone()
            return bool(row and row[0])

    def keep_alive(self) -> None:
        """Use the session, before a wait for Kafka: PostgreSQL ends an idle session."""
        with self._session() as session:
            session.execute("")

    def close(self) -> None:
        """Close the session, which frees the lock; never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    # -- Identity and cursor ----------------------------------------------------------------------

    def installation(self) -> tuple[UUID, str]:
        """Return this installation's id and PostgreSQL's system identifier."""
        with self._session() as session:
            row = session.execute(SQL["installation"]).fetchone()
            assert row is not None
            return row[0], row[1]

    def progress(self) -> Progress | None:
        """Return the stored row of the shard."""
        with self._session() as session:
            row = session.execute(SQL["progress"], {"name": self._name}).fetchone()
        return None if row is None else _progress(row)

    def save(
        self,
        cursor: Cursor,
        identity: Identity,
        published: Sequence[PublishedBatch],
        *,
        begins: bool = False,
    ) -> None:
        """Store the cursor and the places of records, in one transaction.

        ``begins``: the cursor starts a generation. Raises CursorMoved when the stored row is ahead
        or halted, or the generation is taken.
        """
        with self._session() as session, session.transaction():
            self._save(session, cursor, identity, begins=begins)
            self._save_publications(session, published)

    def halt(self, reason: HaltReason) -> None:
        """Store that the shard waits for an operator.

        Never on a new session, which would not have the lock: another relay may own the shard.
        """
        if self._connection is None:
            raise DatabaseUnavailable("the session that had the shard's lock is lost")
        row = {"name": self._name, "reason": reason.value, "owner": self._owner}
        with self._session() as session:
            session.execute(SQL["halt"], row)

    # -- Committed messages -----------------------------------------------------------------------

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Read the commits after a position and below the watermark, up to the batch's bounds.

        ``most`` is a further limit on the number of messages.
        """
        with self._session() as session:
            return self._reader.read(session, after, most)

    def compare(self, after: Position, manifest: Manifest) -> Compared:
        """Read the commit log's ids in (after, manifest.to] in one snapshot."""
        is_batch = manifest.kind is Kind.BATCH
        listed = [e for e in manifest.entries if e.status == HELD or not is_batch]
        asked = {
            "shard": self._shard,
            "from_xid": after.xid,
            "from_n": after.n,
            "to_xid": manifest.to.xid,
            "to_n": manifest.to.n,
            "held": _half_ids(listed),
            **bounds(_half_ids(manifest.entries)),
        }
        row = self._compared(asked)
        for _ in range(COMPARISONS - 1):
            row = row if row[0] else self._compared(asked)
        below, listed, held = row
        message_ids = tuple(each.bytes if each else GONE for each in listed or ())
        return Compared(message_ids, below, frozenset(each.bytes for each in held or ()))

    def _compared(self, asked: dict[str, Any]) -> tuple[Any, ...]:
        with self._session() as session:
            row: tuple[Any, ...] | None = session.execute(SQL["compare"], asked).fetchone()
        assert row is not None
        return row

    def recover(self, manifest: Manifest, offset: int, cursor: Cursor, identity: Identity) -> int:
        """Store a batch that Kafka has and PostgreSQL lost, with the cursor, in one transaction.

        Every id published there is stored as published, and its held record is marked. A half
        message among them without a decision is committed: the manifest proves that it had been
        committed and published. Raises CursorMoved as ``save`` does. Returns how many of them are
        rolled back in PostgreSQL; their records cannot be removed from Kafka.
        """
        pairs = [split_message_id(message_id) for message_id in manifest.published]
        with self._session() as session, session.transaction():
            rolled_back = recover_published(session, self._shard, offset, pairs)
            held_records.mark_published(session, manifest, manifest.published, None)
            self._save(session, cursor, identity)
        return rolled_back

    # -- Held records -----------------------------------------------------------------------------

    def hold(self, batch: Manifest, message_ids: Sequence[bytes], refusal: Refusal | None) -> None:
        """Store messages of a batch as held, in one transaction; held ones stay unchanged.

        ``refusal`` None: they wait behind another message. Raises CursorMoved when the batch's
        generation is not the stored one.
        """
        with self._session() as session, session.transaction():
            held_records.hold(session, self._name, batch, message_ids, refusal)

    def read_held(self, position: Position, most: int | None = None) -> Commits:
        """Read the first messages of a due scope, at or below a position, in commit order.

        A record that was itself refused is returned alone.
        """
        with self._session() as session:
            return self._reader.read_held(session, position, most)

    def postpone(self, message_id: bytes, refusal: Refusal) -> None:
        """Store that a held record was refused again: it is due after a longer time."""
        with self._session() as session:
            held_records.postpone(session, message_id, refusal)

    def mark_released(
        self,
        manifest: Manifest,
        places: Places | None,
        cursor: Cursor,
        identity: Identity,
        published: Sequence[PublishedBatch],
    ) -> None:
        """Mark a release's rows and move the cursor, in one transaction.

        ``places`` are those of its P entries, None if they are not known. Raises CursorMoved
        as ``save`` does.
        """
        with self._session() as session, session.transaction():
            ids = [entry.message_id for entry in manifest.entries]
            held_records.mark_published(session, manifest, ids, places)
            self._save(session, cursor, identity)
            self._save_publications(session, published)

    # -- Internal ---------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"relay:{self._shard}"

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """Lend the session, and open it if needed; any error of PostgreSQL closes it."""
        try:
            if self._connection is None:
                self._connection = self._connect(self._url, f"relay-{self._shard}")
                self._connection.execute(SQL["limit_session"])
            yield self._connection
        except psycopg.Error as error:
            self.close()
            raise unavailable(error) from error

    def _save_publications(self, session: Connection, published: Iterable[PublishedBatch]) -> None:
        for batch in published:
            session.execute(SQL["save_publication"], _publication(self._shard, batch))

    def _save(
        self, session: Connection, cursor: Cursor, identity: Identity, *, begins: bool = False
    ) -> None:
        row = {
            "name": self._name,
            "position": cursor.position.xid,
            "position_n": cursor.position.n,
            "manifest_offset": cursor.manifest_offset,
            "batch_no": cursor.batch_no,
            "crc": cursor.crc,
            "gen": cursor.gen,
            "after_gen": cursor.gen - 1 if begins else cursor.gen,
            **identity._asdict(),
            "owner": self._owner,
        }
        if session.execute(SQL["save_progress"], row).fetchone() is None:
            raise CursorMoved


def hold_shards(session: Connection) -> list[int]:
    """Lock every shard until the transaction ends; return the shards that a relay holds."""
    return [row[0] for row in session.execute(SQL["hold_shards"], {"space": LOCK_SPACE})]


def _progress(row: Sequence[Any]) -> Progress:
    xid, n, manifest_offset, batch_no, crc, gen, cluster_id, topic_id, pg_system_id, halt = row
    cursor = None
    if manifest_offset is not None:
        cursor = Cursor(Position(xid, n), manifest_offset, batch_no, crc, gen)
    identity = None if cluster_id is None else Identity(cluster_id, topic_id, pg_system_id)
    return Progress(cursor, identity, None if halt is None else HaltReason(halt))


def _publication(shard: int, batch: PublishedBatch) -> dict[str, Any]:
    return {
        "shard": shard,
        "to_xid": batch.to.xid,
        "to_n": batch.to.n,
        "batch_no": batch.batch_no,
        "from_xid": batch.after.xid,
        "from_n": batch.after.n,
        "half_ids": batch.half_ids,
        "partitions": batch.places.partitions,
        "offsets": batch.places.offsets,
    }


def _half_ids(entries: Sequence[Entry]) -> list[HalfId]:
    return [split_message_id(entry.message_id)[0] for entry in entries]
