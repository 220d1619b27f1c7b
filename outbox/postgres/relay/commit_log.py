"""One shard of the commit log: its lock, its progress row and its committed messages in order.

One session does all of it, for one thread; when the session breaks, nothing that was read is valid.
The lock is for liveness only: the fence in Kafka makes a second relay harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from outbox.errors import CursorMoved, DatabaseUnavailable
from outbox.messages.manifest import Manifest, Position
from outbox.messages.message import DecidedBy, End, Resolution
from outbox.messages.message_id import HalfId, Nonce, split_message_id
from outbox.postgres.messages.decisions import END_RACING, parameters_of
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.messages.message_status import IN_KAFKA
from outbox.postgres.relay.commit_reader import CommitReader
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.answers import Delivered
from outbox.relay.protocol.record_hold import RETRY_FIRST_SECONDS, RETRY_LAST_SECONDS
from outbox.relay.protocol.state import (
    Cursor,
    HaltReason,
    Identity,
    Progress,
    Refusal,
    Refused,
    first_gen,
    number_of,
)

SQL: Final = load(__name__)
LOCK_SPACE: Final = 0x6F757462
"""The first key of the relay's advisory locks; the second key is the shard."""
WAITS: Final = "waits behind a refused record"
"""The ``publish_error`` of a message that was not itself refused."""


class PostgresCommitLog(CommitReader):
    """The lock, the progress, the commits and the held records of one shard, on one session."""

    def __init__(
        self,
        database_url: str,
        shard: int,
        *,
        batch_max: int,
        owner: str,
        connect: Callable[[str, str], Connection] = connect,
    ) -> None:
        super().__init__(database_url, shard, batch_max=batch_max, connect=connect)
        self._owner = owner

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
        published: Sequence[Delivered],
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

    def leave_transactional_id(self, gen: int) -> None:
        """Store the generation that begins the transactional id after that of ``gen``.

        Raises CursorMoved when ``gen`` is not the stored one.
        """
        with self._session() as session:
            row = {"name": self._name, "gen": gen, "next": first_gen(number_of(gen) + 1)}
            if not session.execute(SQL["leave_id"], row).fetchone():
                raise CursorMoved

    def halt(self, reason: HaltReason) -> None:
        """Store that the shard waits for an operator.

        Never on a new session, which would not have the lock: another relay may own the shard.
        """
        if self._connection is None:
            raise DatabaseUnavailable("the session that had the shard's lock is lost")
        row = {"name": self._name, "reason": reason.value, "owner": self._owner}
        with self._session() as session:
            session.execute(SQL["halt"], row)

    # -- Published and held messages --------------------------------------------------------------

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
            _mark_batch(session, manifest, manifest.published, ())
            self._save(session, cursor, identity)
        return rolled_back

    def hold(self, batch: Manifest, message_ids: Sequence[bytes], refusal: Refusal | None) -> None:
        """Store messages of a batch as held, in one transaction; held ones stay unchanged.

        ``refusal`` None: they wait behind another message. Raises CursorMoved when the batch's
        generation is not the stored one.
        """
        half_ids = [split_message_id(message_id)[0] for message_id in message_ids]
        row = {
            "shard": batch.shard,
            "from_xid": batch.after.xid,
            "to_xid": batch.to.xid,
            "half_ids": half_ids,
            "topic_wide": refusal is not None and refusal.refused is Refused.TOPIC,
            "error": refusal.error if refusal else WAITS,
            "attempts": 1 if refusal else 0,
            "wait": RETRY_FIRST_SECONDS if refusal else 0.0,
            **bounds(half_ids),
        }
        with self._session() as session, session.transaction():
            if not session.execute(SQL["owns"], {"name": self._name, "gen": batch.gen}).fetchone():
                raise CursorMoved
            session.execute(SQL["hold"], row)

    def postpone(self, message_id: bytes, refusal: Refusal) -> None:
        """Store that a held record was refused again: it is due after a longer time."""
        row = {
            "half_id": split_message_id(message_id)[0],
            "error": refusal.error,
            "topic_wide": refusal.refused is Refused.TOPIC,
            "first": RETRY_FIRST_SECONDS,
            "last": RETRY_LAST_SECONDS,
        }
        with self._session() as session:
            session.execute(SQL["postpone"], row)

    def mark_released(
        self,
        manifest: Manifest,
        cursor: Cursor,
        identity: Identity,
        published: Sequence[Delivered],
    ) -> None:
        """Mark a release's rows and move the cursor, in one transaction.

        Their places are stored if ``published`` has them. Raises CursorMoved as ``save`` does.
        """
        with self._session() as session, session.transaction():
            ids = [entry.message_id for entry in manifest.entries]
            _mark_batch(session, manifest, ids, published)
            self._save(session, cursor, identity)
            self._save_publications(session, published)

    # -- Internal ---------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"relay:{self._shard}"

    def _save_publications(self, session: Connection, published: Iterable[Delivered]) -> None:
        for manifest, delivery in published:
            row = {
                "shard": manifest.shard,
                "to_xid": manifest.to.xid,
                "to_n": manifest.to.n,
                "batch_no": manifest.batch_no,
                "from_xid": manifest.after.xid,
                "from_n": manifest.after.n,
                "half_ids": delivery.half_ids,
                "partitions": delivery.partitions,
                "offsets": delivery.offsets,
            }
            session.execute(SQL["save_publication"], row)

    def _save(
        self, session: Connection, cursor: Cursor, identity: Identity, *, begins: bool = False
    ) -> None:
        row = {
            "name": self._name,
            **cursor._asdict(),
            **cursor.position._asdict(),
            "after_gen": cursor.gen - 1 if begins else cursor.gen,
            **identity._asdict(),
            "owner": self._owner,
        }
        if session.execute(SQL["save_progress"], row).fetchone() is None:
            raise CursorMoved


def hold_shards(session: Connection) -> list[int]:
    """Lock every shard until the transaction ends; return the shards that a relay holds."""
    return [row[0] for row in session.execute(SQL["hold_shards"], {"space": LOCK_SPACE})]


def recover_published(
    session: Connection, shard: int, offset: int, published: Sequence[tuple[HalfId, Nonce]]
) -> int:
    """Note ids that Kafka has, and commit those of them without a decision.

    That is certain: Kafka has the records, so the decision had been made and published, for all
    messages under it. The same ids may be recovered again. Returns how many of them this PostgreSQL
    has rolled back.
    """
    asked = {
        "shard": shard,
        "offset": offset,
        "half_ids": [half_id for half_id, _ in published],
        "nonces": [nonce for _, nonce in published],
        **bounds([half_id for half_id, _ in published]),
    }
    session.execute(SQL["note_published"], asked)
    ends = [
        End(
            half_id=half_id,
            nonce=nonce,
            decision=Resolution.COMMIT,
            decided_by=DecidedBy.RECOVERY,
            reason=IN_KAFKA,
        )
        for half_id, nonce in session.execute(SQL["leaders"], asked)
    ]
    if ends:
        session.execute(END_RACING, parameters_of(ends))
    return len(session.execute(SQL["audit_rolled_back"], asked).fetchall())


def mark_published(
    session: Connection,
    published: Sequence[tuple[int, HalfId, Nonce]],
    places: Mapping[HalfId, Sequence[int]],
) -> None:
    """Mark the held records, if any, of messages that Kafka has: the batch and the ids of each.

    ``places`` has the partition and the offset of each record whose place is known.
    """
    found = [places.get(half_id, (None, None)) for _, half_id, _ in published]
    row = {
        "batch_nos": [batch_no for batch_no, _, _ in published],
        "half_ids": [half_id for _, half_id, _ in published],
        "nonces": [nonce for _, _, nonce in published],
        "partitions": [partition for partition, _ in found],
        "offsets": [offset for _, offset in found],
    }
    session.execute(SQL["mark_published"], row)


def _progress(row: Sequence[Any]) -> Progress:
    xid, n, manifest_offset, batch_no, crc, gen, *identified, halt = row
    cursor = None
    if manifest_offset is not None:
        cursor = Cursor(Position(xid, n), manifest_offset, batch_no, crc, gen)
    identity = None if identified[0] is None else Identity(*identified)
    return Progress(cursor, identity, None if halt is None else HaltReason(halt))


def _mark_batch(
    session: Connection,
    manifest: Manifest,
    message_ids: Sequence[bytes],
    published: Iterable[Delivered],
) -> None:
    """Mark the rows, if any, of messages of a batch; their places are in ``published``."""
    places = {
        half_id: place
        for batch, delivery in published
        if batch.batch_no == manifest.batch_no
        for half_id, *place in zip(
            delivery.half_ids, delivery.partitions, delivery.offsets, strict=True
        )
    }
    ids = [(manifest.batch_no, *split_message_id(message_id)) for message_id in message_ids]
    mark_published(session, ids, places)
