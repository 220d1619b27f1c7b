"""What a shard's relay asks of PostgreSQL and Kafka: one thread a shard.

The relay's decisions are in ``outbox.relay_protocol``; here is what it can see and do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from outbox.manifest import Manifest, Position
from outbox.message_id import HalfId
from outbox.record import Committed, Record
from outbox.relay_protocol.state import Cursor, Found, HaltReason, Identity, Progress


class Commits(NamedTuple):
    """The next committed messages of a shard, in commit order."""

    to: Position
    messages: Sequence[Committed]
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]
    """The message ids that Kafka has already."""


class Rival(NamedTuple):
    """What is seen of a shard that another session owns."""

    position: Position
    waiting: bool
    """Commits wait beyond the stored position, and the shard is not halted."""


class Comparison(NamedTuple):
    """A range of the commit log, read in one snapshot, to hold a manifest against."""

    message_ids: tuple[bytes, ...]
    below_watermark: bool
    held: frozenset[bytes]


class Places(NamedTuple):
    """Where Kafka put records, in the order they were given."""

    partitions: Sequence[int]
    offsets: Sequence[int]


class Delivery(NamedTuple):
    """What the delivery reports of a batch say; ``refused`` names the first permanent refusal."""

    good: int
    places: Places
    refused: Refusal | None


class Refusal(NamedTuple):
    """A record that Kafka will never take as it is: its place in the batch, and Kafka's word."""

    place: int
    error: str


class PublishedBatch(NamedTuple):
    """A batch for ``publication_log``: its range, the ids it published and where they lie."""

    batch_no: int
    crc: int
    after: Position
    to: Position
    half_ids: Sequence[HalfId]
    places: Places


class Cluster(NamedTuple):
    """The Kafka cluster and its progress topic as they are now."""

    cluster_id: str
    topic_id: str
    partitions: int


class CommitLog(Protocol):
    """One shard of the commit log, on one session that also holds the shard's lock.

    Every method raises DatabaseUnavailable when the session is lost; then all is void.
    """

    def try_lock(self) -> bool:
        """Open the session if need be and ask for the shard's lock without waiting."""

    def rival(self) -> Rival:
        """Return what is seen of the shard while another session owns it."""

    def terminate_holder(self) -> None:
        """End the session that holds the lock."""

    def installation(self) -> tuple[UUID, str]:
        """Return this installation's id and PostgreSQL's system identifier."""

    def progress(self) -> Progress | None:
        """Return the stored row of the shard."""

    def save(self, cursor: Cursor, identity: Identity, published: Sequence[PublishedBatch]) -> None:
        """Store the cursor and where records lie, in one transaction.

        Raises CursorMoved when the stored row is ahead or halted.
        """

    def halt(self, reason: HaltReason) -> None:
        """Store that the shard waits for an operator."""

    def read(self, after: Position) -> Commits:
        """Read what follows a position and is below the watermark, up to the batch's bounds."""

    def compare(self, after: Position, manifest: Manifest) -> Comparison:
        """Read the commit log's ids in (after, manifest.to] in one snapshot."""

    def recover(self, manifest: Manifest, offset: int, cursor: Cursor, identity: Identity) -> int:
        """Teach PostgreSQL a batch that Kafka has, cursor included, in one transaction.

        Every id published there is noted as such; a half message among them without a decision is
        committed, since the manifest proves that this had been decided and acted on. Returns how
        many of them PostgreSQL says were rolled back: records that cannot be called back.
        """

    def close(self) -> None:
        """Close the session, which frees the lock; never raises."""


class CommitWatch(Protocol):
    """Tells cheaply which shards have something new; a session of its own, never a basis."""

    def fresh_shards(self) -> frozenset[int]:
        """Return the shards with commits that became final since the last call.

        Raises DatabaseUnavailable.
        """

    def close(self) -> None:
        """Close the session; never raises."""


class Publisher(Protocol):
    """A shard's transactional producer: one handle at a time.

    Methods raise PublisherFenced when a newer producer of the shard exists or the handle is beyond
    repair, and KafkaUnavailable for everything else; either way the transaction is in doubt.
    """

    def fence(self, installation: UUID) -> None:
        """Make a new handle; returns when it is alone and older transactions are complete."""

    def begin(self) -> None:
        """Begin a transaction."""

    def publish(self, records: Sequence[Record]) -> Delivery:
        """Produce the records in order, flush, and count the reports."""

    def publish_manifest(self, value: bytes) -> int:
        """Produce the manifest, flush, and return its offset (-1: unknown)."""

    def commit(self) -> None:
        """Commit the transaction; an exception says nothing about what became of it."""

    def drop(self) -> None:
        """Forget the handle without waiting for it; its late reports are ignored. Never raises."""


class ProgressLog(Protocol):
    """The manifests of one shard as Kafka has them. Methods raise KafkaUnavailable."""

    def cluster(self) -> Cluster:
        """Return who the cluster and the progress topic are."""

    def bounds(self) -> tuple[int, int]:
        """Return where the shard's log starts and ends; aborted records and markers count."""

    def read(self, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        """Read committed manifests from ``first`` on, and whether nothing is left below ``end``.

        May return some of them; returns none and False when the time allowed has passed.
        """
