"""The state of a shard's relay: its phase, its cursor, the manifests it compares, its open batch.

It is frozen and hashable, so that a search over every interleaving can run the same functions.
Times are monotonic seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from msgspec import Struct

from outbox.messages.manifest import Manifest, Position
from outbox.messages.offset_run import OffsetRuns

NO_MANIFESTS: Final = -1
"""The manifest offset of a cursor in the mode at_least_once, which writes no manifests."""

_T = TypeVar("_T")


class Phase(StrEnum):
    """The phase of a shard's relay."""

    IDLE = "idle"
    """It does not hold the shard."""
    VERIFY = "verify"
    """It checks that Kafka and PostgreSQL are the stores it knew."""
    FENCE = "fence"
    """It fences every older producer of the shard and waits for their open transactions."""
    REPLAY = "replay"
    """It reads the manifests back from Kafka and compares them with the commit log."""
    RUN = "run"
    """It publishes."""
    HALT = "halt"
    """A difference that a program must not resolve: an operator decides."""


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
    """The only reason that ends by itself: when the blocking foreign transaction has ended."""


class Failure(StrEnum):
    """How an action failed."""

    DATABASE = "database"
    """PostgreSQL failed or the session is lost: all knowledge is void."""
    OVERTAKEN = "overtaken"
    """Another relay has moved this shard's progress further."""
    FENCED = "fenced"
    """A newer producer of the shard exists, or our handle cannot be used any more."""
    KAFKA = "kafka"
    """Any other error of Kafka: the result of the transaction is unknown."""


class Refused(StrEnum):
    """The scope of a permanent refusal, according to Kafka's error."""

    RECORD = "record"
    """This record: later records of its topic and key must wait."""
    TOPIC = "topic"
    """Every record of the topic."""


class Narrowing(NamedTuple):
    """The bisection of a batch that Kafka refuses without a name, or does not take in time."""

    suspects: int = 0
    """This number of next messages has failed together; 0: none has."""
    most: int | None = None
    """The limit of messages in the next batch; None: only the usual limit."""


WIDE: Final = Narrowing()
"""Nothing is suspected."""


class Identity(NamedTuple):
    """The identity of the Kafka cluster, the progress topic and PostgreSQL."""

    cluster_id: str
    topic_id: str
    pg_system_id: str


class Visible(NamedTuple):
    """The last batch that consumers are known to see, and the manifest that comes after it."""

    batch_no: int = 0
    offset: int = 0


class Cursor(NamedTuple):
    """A consistent pair: the position, and the manifest that comes next (a lower bound)."""

    position: Position
    manifest_offset: int
    batch_no: int
    crc: int
    gen: int
    visible: Visible = Visible()

    @property
    def is_listed(self) -> bool:
        """Whether manifests list the batches at the cursor: the mode is exactly_once."""
        return self.manifest_offset != NO_MANIFESTS


class Progress(NamedTuple):
    """The stored row of a shard; it has no cursor if only a halt was ever stored."""

    cursor: Cursor | None
    identity: Identity | None
    halt: HaltReason | None


class Found(NamedTuple):
    """A manifest read back at its offset; None if the bytes are no manifest."""

    offset: int
    manifest: Manifest | None
    crc: int
    at_ms: int = 0
    """The time of the record (ms since the epoch)."""


class SignsOfLife(NamedTuple):
    """What an owner of the shard changes in the stored row while it lives."""

    position: Position
    manifest_offset: int = 0
    gen: int = 0
    beat: float = 0.0
    """When it last wrote the row (s since the epoch): also while it waits for Kafka."""


class Watch(NamedTuple):
    """The last signs of life of another owner that has waiting work, and since when."""

    signs: SignsOfLife
    since: float


class Relay(Struct, frozen=True, kw_only=True):
    """The state of one shard's relay."""

    shard: int
    at_least_once: bool = False
    """The delivery mode: no transactions, no manifests, and a crash repeats records."""
    entering: bool = False
    """That mode begins once the last batches of exactly_once are settled."""
    phase: Phase = Phase.IDLE
    halt: HaltReason | None = None
    installation: UUID | None = None
    identity: Identity | None = None
    cursor: Cursor | None = None
    end: int = 0
    """REPLAY: the high watermark to reach."""
    found: tuple[Found, ...] = ()
    """REPLAY: manifests read and not yet compared."""
    reached: bool = False
    """REPLAY: everything below ``end`` has been read."""
    waited: float = 0.0
    """REPLAY: how long a broker that answers had nothing to read below ``end`` (s)."""
    differs: bool = False
    """REPLAY: a manifest did not match the commit log, so later ones are not compared."""
    batch: Manifest | None = None
    """RUN: the batch whose transaction is open."""
    candidate: Cursor | None = None
    """RUN: the cursor if that transaction commits."""
    placed: OffsetRuns | None = ()
    """RUN: where the records of that batch are; None if Kafka did not say."""
    before: OffsetRuns | None = None
    """RUN: where the records of the last committed batch are; None after a takeover."""
    failures: int = 0
    unproven: bool = False
    """RUN: the last batches are to be read: another program's transaction hides those of the former
    owner, or a log is gone."""
    settled_at: float | None = None
    """When these were last read."""
    repairing: bool = False
    """RUN: messages that are proven absent come first."""
    dirty: bool = False
    """The cursor is after the stored one."""
    saved_at: float | None = None
    awaited: bool = False
    """A caller waits for something after the stored cursor."""
    signed_at: float | None = None
    """When the last manifest was written."""
    watch: Watch | None = None
    narrowing: Narrowing = WIDE
    """RUN: the bisection of the commits after the position."""
    release_narrowing: Narrowing = WIDE
    """RUN: the bisection of the held records that are due."""
    released_last: bool = False
    """The last batch was a release: waiting commits come first now."""

    @property
    def is_listing(self) -> bool:
        """Whether it works with transactions and manifests now."""
        return self.entering or not self.at_least_once

    @property
    def at(self) -> Cursor:
        """The cursor, in the phases that have one (from REPLAY on)."""
        return require(self.cursor)

    @property
    def who(self) -> Identity:
        """The verified identity, in the phases that have one (from FENCE on)."""
        return require(self.identity)


def require(value: _T | None) -> _T:
    """Return a value that the phase guarantees; AssertionError is a defect of the protocol."""
    if value is None:
        raise AssertionError("the protocol reached a phase without a value that it needs there")
    return value
