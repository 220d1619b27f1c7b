"""What a shard's relay knows: its phase, its cursor, the manifests it compares, its open batch.

Frozen and hashable, so that a search over every interleaving can run the very same functions.
Times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from outbox.messages.manifest import Manifest, Position

SHARDS: Final = 16
NO_MANIFESTS: Final = -1
"""The manifest offset of a cursor in the lane at_least_once, which writes no manifests."""

_T = TypeVar("_T")


class Phase(StrEnum):
    """Where a shard's relay stands."""

    IDLE = "idle"
    """It does not hold the shard."""
    VERIFY = "verify"
    """It makes sure that Kafka and PostgreSQL are the ones it knew."""
    FENCE = "fence"
    """It shuts out every older producer of the shard and waits for what they left."""
    REPLAY = "replay"
    """It reads back what Kafka has and compares it with the commit log."""
    RUN = "run"
    """It publishes."""
    HALT = "halt"
    """Something differs that no program may settle: an operator decides."""


class HaltReason(StrEnum):
    """Why a shard waits for an operator."""

    CLUSTER_CHANGED = "cluster_changed"
    TOPIC_CHANGED = "topic_changed"
    DATABASE_CHANGED = "database_changed"
    CURSOR_MISSING = "cursor_missing"
    PROGRESS_LOST = "progress_lost"
    CHAIN_BROKEN = "chain_broken"
    FOREIGN_MANIFEST = "foreign_manifest"
    REPLAY_STUCK = "replay_stuck"
    """The only one that ends by itself: when the foreign transaction in the way has ended."""


class Failure(StrEnum):
    """How an action failed."""

    DATABASE = "database"
    """PostgreSQL failed or the session is lost: all that was known is void."""
    OVERTAKEN = "overtaken"
    """Somebody else has moved this shard's progress further."""
    FENCED = "fenced"
    """A newer producer of the shard exists, or ours is beyond repair."""
    KAFKA = "kafka"
    """Anything else of Kafka's: what the transaction came to is unknown."""


class Refused(StrEnum):
    """What Kafka refuses for good, as far as its error says."""

    RECORD = "record"
    """This record: later ones of its topic and key must wait."""
    TOPIC = "topic"
    """Every record of the topic."""


class Narrowing(NamedTuple):
    """A refused batch is halved until the record that Kafka refuses stands alone."""

    suspects: int = 0
    """So many of the next messages have one among them that Kafka refuses; 0: none known."""
    most: int | None = None
    """The next batch may hold so many messages; None: no limit but the usual one."""
    alone: bytes | None = None
    """The message that was refused once as the only record of its transaction."""


WIDE: Final = Narrowing()
"""Nothing is suspected."""


class Identity(NamedTuple):
    """Which Kafka cluster, progress topic and PostgreSQL this is."""

    cluster_id: str
    topic_id: str
    pg_system_id: str


class Cursor(NamedTuple):
    """A consistent pair: the position, and the manifest that comes next (a lower bound)."""

    position: Position
    manifest_offset: int
    batch_no: int
    crc: int
    gen: int

    @property
    def is_listed(self) -> bool:
        """Every batch at the cursor is listed in a manifest: the lane is exactly_once."""
        return self.manifest_offset != NO_MANIFESTS


class Progress(NamedTuple):
    """The stored row of a shard; without a cursor where only a halt was ever stored."""

    cursor: Cursor | None
    identity: Identity | None
    halt: HaltReason | None


class Found(NamedTuple):
    """A manifest read back at its offset; None where the bytes are no manifest."""

    offset: int
    manifest: Manifest | None
    crc: int


class Watch(NamedTuple):
    """A position at which another owner of the shard was seen to have work, and since when."""

    position: Position
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """The state of one shard's relay."""

    shard: int
    at_least_once: bool = False
    """The lane: no transactions, no manifests, and a crash repeats records."""
    phase: Phase = Phase.IDLE
    halt: HaltReason | None = None
    installation: UUID | None = None
    identity: Identity | None = None
    cursor: Cursor | None = None
    end: int = 0
    """REPLAY: the high watermark to be reached."""
    found: tuple[Found, ...] = ()
    """REPLAY: manifests read and not yet compared."""
    reached: bool = False
    """REPLAY: everything below ``end`` has been read."""
    differs: bool = False
    """REPLAY: a manifest did not match the commit log, so no later one is trusted to."""
    batch: Manifest | None = None
    """RUN: the batch whose transaction is open."""
    candidate: Cursor | None = None
    """RUN: the cursor if that transaction commits."""
    failures: int = 0
    dirty: bool = False
    """The cursor is ahead of the stored one."""
    saved_at: float | None = None
    signed_at: float | None = None
    """When the last manifest was written."""
    watch: Watch | None = None
    narrowing: Narrowing = WIDE
    """RUN: of what follows the position."""
    release_narrowing: Narrowing = WIDE
    """RUN: of the held records that are due."""
    released_last: bool = False
    """The last batch was a release: commits that wait come first now."""

    @property
    def at(self) -> Cursor:
        """The cursor, in the phases that have one (from REPLAY on)."""
        return known(self.cursor)

    @property
    def who(self) -> Identity:
        """The verified identity, in the phases that have one (from FENCE on)."""
        return known(self.identity)


def known(value: _T | None) -> _T:
    """Return what the phase guarantees to be there; AssertionError is a fault of the protocol."""
    if value is None:
        raise AssertionError("the protocol reached a phase without what it needs there")
    return value
