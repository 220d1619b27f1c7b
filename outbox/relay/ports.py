"""What a shard's relay asks of PostgreSQL and Kafka: one thread per shard.

The relay's decisions are in ``outbox.relay.protocol``; these ports are its inputs and effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from outbox.messages.manifest import Manifest, Position
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Record
from outbox.relay.protocol.answers import UNKNOWN_OFFSET, Commits, Compared, HeldBatch
from outbox.relay.protocol.state import Cursor, Found, HaltReason, Identity, Progress, Refused

THIS_CLOCK: Final = 0
"""The timestamp of a record comes from the clock of the publishing process."""


class Places(NamedTuple):
    """The partitions and offsets of records, in the order they were given."""

    partitions: Sequence[int]
    offsets: Sequence[int]


class DeliveryReport(NamedTuple):
    """The delivery reports of a batch; ``refused`` is the first permanent refusal."""

    good: int
    places: Places
    refused: Refusal | None
    manifest_offset: int = UNKNOWN_OFFSET
    failure: str | None = None
    """The first record that was not delivered for another cause: its topic, and the cause."""
    alike: Sequence[int] = ()
    """The places of the other records that Kafka names in the same refusal."""


class Refusal(NamedTuple):
    """A record that Kafka refuses permanently: its place in the batch, and Kafka's error."""

    place: int
    error: str
    refused: Refused
    named: bool = False
    """It is this record; otherwise it may be another one that was sent together with it."""


class PublishedBatch(NamedTuple):
    """A batch for ``publication_log``: its range, the ids it published and their places."""

    batch_no: int
    crc: int
    after: Position
    to: Position
    half_ids: Sequence[HalfId]
    places: Places


class Cluster(NamedTuple):
    """The current identity of the Kafka cluster and its progress topic."""

    cluster_id: str
    topic_id: str
    partitions: int


class ShardProgress(Protocol):
    """A shard's lock and its stored row, on the session that holds the lock.

    Every method raises DatabaseUnavailable when the session is lost; its results are void then.
    """

    def try_lock(self) -> bool:
        """Open the session if necessary and request the shard's lock without waiting."""

    def keep_alive(self) -> None:
        """Use the session, before a wait for Kafka: PostgreSQL ends an idle session."""

    def installation(self) -> tuple[UUID, str]:
        """Return this installation's id and PostgreSQL's system identifier."""

    def progress(self) -> Progress | None:
        """Return the stored row of the shard."""

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

    def halt(self, reason: HaltReason) -> None:
        """Store that the shard waits for an operator.

        Raises DatabaseUnavailable if the session that has the lock is lost.
        """

    def close(self) -> None:
        """Close the session, which frees the lock; never raises."""


class CommitLog(Protocol):
    """The committed messages of a shard, on its session. Methods raise DatabaseUnavailable."""

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Read the commits after a position and below the watermark, up to the batch's bounds.

        ``most`` is a further limit on the number of messages.
        """

    def compare(self, after: Position, manifest: Manifest) -> Compared:
        """Read the commit log's ids in (after, manifest.to] in one snapshot."""

    def recover(self, manifest: Manifest, offset: int, cursor: Cursor, identity: Identity) -> int:
        """Store a batch that Kafka has and PostgreSQL lost, with the cursor, in one transaction.

        Every id published there is stored as published, and its held record is marked. A half
        message among them without a decision is committed: the manifest proves that it had been
        committed and published. Raises CursorMoved as ``save`` does. Returns how many of them are
        rolled back in PostgreSQL; their records cannot be removed from Kafka.
        """


class HeldRecords(Protocol):
    """The held records of a shard, on its session. Methods raise DatabaseUnavailable."""

    def hold(self, batch: Manifest, message_ids: Sequence[bytes], refusal: Refusal | None) -> None:
        """Store messages of a batch as held, in one transaction; held ones stay unchanged.

        ``refusal`` None: they wait behind another message. Raises CursorMoved when the batch's
        generation is not the stored one.
        """

    def read_held(self, position: Position, most: int | None = None) -> HeldBatch:
        """Read the first messages of a due scope, at or below a position, in commit order.

        A record that was itself refused is returned alone.
        """

    def postpone(self, message_id: bytes, refusal: Refusal) -> None:
        """Store that a held record was refused again: it is due after a longer time."""

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


class CommitWatch(Protocol):
    """Finds cheaply the shards with new commits, on a separate session; only a hint."""

    def fresh_shards(self) -> frozenset[int]:
        """Return the shards with commits that became final since the last call.

        Raises DatabaseUnavailable.
        """

    def close(self) -> None:
        """Close the session; never raises."""


class Publisher(Protocol):
    """A shard's transactional producer: one handle at a time.

    Methods raise PublisherFenced when a newer producer of the shard exists or the handle cannot
    be used any more, and KafkaUnavailable for every other error: the transaction is in doubt then.
    """

    def serve(self) -> None:
        """Take what the handle has noted since the last call, such as lost connections.

        An idle handle keeps its notes in memory until then, without a bound while Kafka is away.
        """

    def fence(self, installation: UUID) -> None:
        """Create a handle; return when older ones are fenced and their transactions complete."""

    def begin(self) -> None:
        """Begin a transaction."""

    def publish(
        self,
        records: Sequence[Record],
        manifest: bytes,
        at_ms: int = THIS_CLOCK,
        *,
        apart: bool = False,
    ) -> DeliveryReport:
        """Produce the records in order, then the manifest; flush, and count the reports.

        ``apart``: the manifest only after Kafka has acknowledged each record. Only then a refusal
        is reported. ``at_ms`` is the timestamp of all of them, in milliseconds since the epoch.
        """

    def commit(self) -> None:
        """Commit the transaction; after an exception its result is unknown."""

    def drop(self) -> None:
        """Drop the handle without waiting for it; its late reports are ignored. Never raises."""


class ProgressLog(Protocol):
    """The manifests of one shard in Kafka. Methods raise KafkaUnavailable."""

    def cluster(self) -> Cluster:
        """Return the identity of the cluster and the progress topic."""

    def bounds(self) -> tuple[int, int]:
        """Return the start and end offset of the shard's log, with aborted records and markers."""

    def read(self, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        """Read committed manifests from ``first`` on, and whether nothing is left below ``end``.

        It may return only some of them. After some seconds it returns none and False if the broker
        answers.
        """


class RelayStores(NamedTuple):
    """What the relay of a shard works on."""

    row: ShardProgress
    commit_log: CommitLog
    held_records: HeldRecords
    publisher: Publisher
    manifests: ProgressLog


class UnnamedRecord(NamedTuple):
    """A record that recovery found listed in a manifest, or ``resolve --scan`` in its topic."""

    half_id: HalfId
    nonce: Nonce
    shard: int
    manifest_offset: int


class RecordName(NamedTuple):
    """The producer and transaction of a record, from its headers."""

    half_id: HalfId
    nonce: Nonce
    producer_group: str
    transaction_id: str | None


class Orphans(Protocol):
    """Ids in ``already_published`` without a name. Methods raise DatabaseUnavailable."""

    async def unnamed(self, limit: int) -> Sequence[UnnamedRecord]:
        """Return the oldest ids whose records were not searched yet."""

    async def topics(self) -> Sequence[str]:
        """Return the topics that may have their records."""

    async def note(self, sought: Sequence[UnnamedRecord], named: Sequence[RecordName]) -> None:
        """Store the names that were found; the records of the other ids are gone."""


class RecordNames(Protocol):
    """The headers of published records; called from a thread."""

    def read(self, sought: Sequence[UnnamedRecord], topics: Sequence[str]) -> Sequence[RecordName]:
        """Return the names of the records that the topics still have. Raises KafkaUnavailable."""
