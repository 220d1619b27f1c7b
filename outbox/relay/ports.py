"""What a shard's relay asks of PostgreSQL and Kafka: one thread per shard.

The relay's decisions are in ``outbox.relay.protocol``; these ports are its inputs and effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from outbox.messages.manifest import Kind, Manifest, Position
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Committed, Record
from outbox.relay.doubt import Doubt, InDoubt, SettledRecords
from outbox.relay.protocol.answers import UNKNOWN_OFFSET
from outbox.relay.protocol.state import (
    Cursor,
    Found,
    HaltReason,
    Identity,
    Progress,
    Refused,
    SignsOfLife,
)

THIS_CLOCK: Final = 0
"""The timestamp of a record comes from the clock of the publishing process."""
TIME_REFUSED: Final = "INVALID_TIMESTAMP"
"""Kafka's error for a record whose time is too far from the broker's clock."""


class Commits(NamedTuple):
    """The next committed messages of a shard, in commit order."""

    to: Position
    messages: Sequence[Committed]
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]
    """The message ids that Kafka already has."""
    held: frozenset[bytes] = frozenset()
    """The ids that have a row in ``held_record`` or whose scope has an open one."""
    due: bool = False
    """A scope of held messages at or below the position is due for a retry."""
    ages: tuple[float, ...] = ()
    """Seconds since the first and the last of them were decided, by PostgreSQL's clock."""
    awaited: bool = False
    """A caller waits until one of them, or of the next few, is published."""


class HeldBatch(NamedTuple):
    """The first messages of a held scope that is due, in commit order."""

    kind: Kind
    messages: Sequence[Committed]
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]
    redriven: str | None
    """The operator's action that ordered to publish them again, if any."""


class Rival(NamedTuple):
    """The state of a shard that another session owns."""

    signs: SignsOfLife
    waiting: bool
    """Commits after the stored position or due held records wait, and no operator has to act."""


class Comparison(NamedTuple):
    """A range of the commit log, read in one snapshot, to compare with a manifest."""

    message_ids: tuple[bytes, ...]
    below_watermark: bool
    held: frozenset[bytes]


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
    newest_at: float = 0.0
    """The latest time of the shard's manifests, in Unix seconds; 0 without one."""


class CommitLog(Protocol):
    """One shard of the commit log, on one session that also holds the shard's lock.

    Every method raises DatabaseUnavailable when the session is lost; its results are void then.
    """

    def try_lock(self) -> bool:
        """Open the session if necessary and request the shard's lock without waiting."""

    def rival(self) -> Rival:
        """Return the state of the shard while another session owns it."""

    def beat(self) -> None:
        """Renew the time in the stored row, if there is one: a sign of life for other owners."""

    def terminate_holder(self) -> bool:
        """End the session that holds the lock; False: a stranger's, which we may not end."""

    def installation(self) -> tuple[UUID, str]:
        """Return this installation's id and PostgreSQL's system identifier."""

    def now(self) -> float:
        """Return PostgreSQL's time in seconds since the epoch."""

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

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Read the commits after a position and below the watermark, up to the batch's bounds.

        ``most`` is a further limit on the number of messages.
        """

    def hold(self, batch: Manifest, message_ids: Sequence[bytes], refusal: Refusal | None) -> None:
        """Store messages of a batch as held, in one transaction; held ones stay unchanged.

        ``refusal`` None: they wait behind another message. Raises CursorMoved when the batch's
        generation is not the stored one.
        """

    def read_held(self, position: Position, most: int | None = None) -> HeldBatch | None:
        """Read the first messages of a due scope, at or below a position, in commit order.

        A record that was itself refused is returned alone. None: nothing is due.
        Raises CommittedMessageDamaged if the first record cannot be read.
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

    def compare(self, after: Position, manifest: Manifest) -> Comparison:
        """Read the commit log's ids in (after, manifest.to] in one snapshot."""

    def recover(self, manifest: Manifest, offset: int, cursor: Cursor, identity: Identity) -> int:
        """Store a batch that Kafka has and PostgreSQL lost, with the cursor, in one transaction.

        Every id published there is stored as published, and its held record is marked. A half
        message among them without a decision is committed: the manifest proves that it had been
        committed and published. Raises CursorMoved as ``save`` does. Returns how many of them are
        rolled back in PostgreSQL; their records cannot be removed from Kafka.
        """

    def in_doubt(self, listed: Sequence[bytes], position: Position) -> InDoubt:
        """Return where these messages were sent, and the next messages with their topics."""

    def order_repairs(self, gen: int, message_ids: Sequence[bytes], batch_no: int) -> int:
        """Store messages that no consumer will see, to be published again; audited.

        Those that wait already, or that a batch after ``batch_no`` released, are unchanged. Raises
        CursorMoved when the generation is not the stored one. Returns how many were stored.
        """

    def close(self) -> None:
        """Close the session, which frees the lock; never raises."""


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
    be used any more, and KafkaUnavailable for every other error: KafkaTimeRefused for the time of a
    manifest. Then the transaction is in doubt.
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

    def heal(self, partitions: Sequence[tuple[str, int]], at_ms: int = THIS_CLOCK) -> None:
        """Produce one record of this time to each partition in the open transaction, and flush.

        The transaction is not committed: the next fence aborts it, and with it what hangs there.
        """

    def drop(self) -> None:
        """Drop the handle without waiting for it; its late reports are ignored. Never raises."""


class ProgressLog(Protocol):
    """The manifests of one shard in Kafka. Methods raise KafkaUnavailable."""

    @property
    def topic(self) -> str:
        """The topic of the manifests."""

    def cluster(self) -> Cluster:
        """Return the identity of the cluster and the progress topic."""

    def bounds(self) -> tuple[int, int]:
        """Return the start and end offset of the shard's log, with aborted records and markers."""

    def read(self, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        """Read committed manifests from ``first`` on, and whether nothing is left below ``end``.

        It may return only some of them. After some seconds it returns none and False if the broker
        answers.
        """

    def read_all(self, first: int, end: int, *, committed: bool) -> tuple[Found, ...]:
        """Read every manifest in a range; also those of aborted and open transactions, unless
        only the ``committed`` ones are wanted.
        """

    def stable_end(self) -> int:
        """Return the offset below which every transaction has ended."""


class UnseenRecords(Protocol):
    """What became of the shard's last transactions in the data topics."""

    def read(self, doubt: Doubt, *, patient: bool) -> SettledRecords:
        """Return what is still open, or what consumers see. Raises KafkaUnavailable.

        ``patient``: wait a moment for open transactions, which are usually other shards'.
        """


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
