"""What a shard's relay asks of PostgreSQL and Kafka: one thread a shard.

The relay's decisions are in ``outbox.relay.protocol``; here is what it can see and do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from outbox.messages.manifest import Kind, Manifest, Position
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Committed, Record
from outbox.relay.protocol.state import Cursor, Found, HaltReason, Identity, Progress, Refused

THIS_CLOCK: Final = 0
"""The timestamp of a record is taken from the publishing process's own clock."""


class Commits(NamedTuple):
    """The next committed messages of a shard, in commit order."""

    to: Position
    messages: Sequence[Committed]
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]
    """The message ids that Kafka has already."""
    held: frozenset[bytes] = frozenset()
    """Those that have a row in ``held_record`` or whose scope has an open one."""
    due: bool = False
    """A scope of held messages at or below the position is due to be tried."""
    ages: tuple[float, ...] = ()
    """Seconds since the first and the last of them were decided, by PostgreSQL's clock."""


class HeldBatch(NamedTuple):
    """The first messages of a held scope that is due, in commit order."""

    kind: Kind
    messages: Sequence[Committed]
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]
    redriven: str | None
    """The action that ordered them to be published anew, if one did."""


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
    refused: Refused


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
        """Store the cursor and where records lie, in one transaction; ``begins`` a generation.

        Raises CursorMoved when the stored row is ahead or halted, or the generation is taken.
        """

    def halt(self, reason: HaltReason) -> None:
        """Store that the shard waits for an operator."""

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Read what follows a position and is below the watermark, up to the batch's bounds.

        ``most`` bounds the messages further.
        """

    def hold(self, batch: Manifest, message_ids: Sequence[bytes], refusal: Refusal | None) -> None:
        """Store messages of a batch as held, in one transaction; those that are held stay so.

        ``refusal`` None: they wait behind another. Raises CursorMoved when the batch's generation
        is not the stored one.
        """

    def read_held(self, position: Position, most: int | None = None) -> HeldBatch | None:
        """Read the first messages of a scope that is due, at or below a position, in order.

        Commits decide the order. A record that was refused itself comes alone; None: nothing is
        due.
        """

    def postpone(self, message_id: bytes, refusal: Refusal) -> None:
        """Store that a held record was refused once more: it is due after a longer time."""

    def mark_released(
        self,
        manifest: Manifest,
        places: Places | None,
        cursor: Cursor,
        identity: Identity,
        published: Sequence[PublishedBatch],
    ) -> None:
        """Mark a release's rows and move the cursor, in one transaction.

        ``places`` are those of its P entries, None where they are not known. Raises CursorMoved
        as ``save`` does.
        """

    def compare(self, after: Position, manifest: Manifest) -> Comparison:
        """Read the commit log's ids in (after, manifest.to] in one snapshot."""

    def recover(self, manifest: Manifest, offset: int, cursor: Cursor, identity: Identity) -> int:
        """Teach PostgreSQL a batch that Kafka has, cursor included, in one transaction.

        Every id published there is noted as such, and its held record marked; a half message among
        them without a decision is committed, since the manifest proves that this had been decided
        and acted on. Raises CursorMoved as ``save`` does. Returns how
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

    def publish(self, records: Sequence[Record], at_ms: int = THIS_CLOCK) -> Delivery:
        """Produce the records in order, flush, and count the reports.

        ``at_ms`` is their timestamp in milliseconds since the epoch.
        """

    def publish_manifest(self, value: bytes, at_ms: int = THIS_CLOCK) -> int:
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


class UnnamedRecord(NamedTuple):
    """A record that recovery found listed in a manifest, or ``resolve --scan`` in its topic."""

    half_id: HalfId
    nonce: Nonce
    shard: int
    manifest_offset: int


class RecordName(NamedTuple):
    """Whose a record is, by its headers."""

    half_id: HalfId
    nonce: Nonce
    producer_group: str
    transaction_id: str | None


class Orphans(Protocol):
    """Ids in ``already_published``, to be named. Methods raise DatabaseUnavailable."""

    async def unnamed(self, limit: int) -> Sequence[UnnamedRecord]:
        """Return the first found whose records were not yet looked for."""

    async def topics(self) -> Sequence[str]:
        """Return the topics that may hold their records."""

    async def note(self, sought: Sequence[UnnamedRecord], named: Sequence[RecordName]) -> None:
        """Store the names that were found, and that the records of the others are gone."""


class RecordNames(Protocol):
    """The headers of published records; called from a thread."""

    def read(self, sought: Sequence[UnnamedRecord], topics: Sequence[str]) -> Sequence[RecordName]:
        """Return the names of those that the topics still have. Raises KafkaUnavailable."""
