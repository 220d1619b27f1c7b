"""The state of a shard's relay: its phase, its cursor, the manifests it compares, its open batch.

It is frozen and hashable, so that a search over every interleaving can run the same functions.
Times are monotonic seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from msgspec import Struct

from outbox.messages.manifest import Entry, Kind, Manifest, Position

_T = TypeVar("_T")
GEN_BITS: Final = 32
"""More owners than one transactional id ever has."""


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
    """Ends without an operator: when the blocking foreign transaction has ended."""
    ROW_MISSING = "row_missing"
    """The next committed message has no row any more: nothing tells its topic and its key."""


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
    STUCK = "stuck"
    """Kafka cannot end the last transaction of our transactional id."""
    ROW_MISSING = "row_missing"
    """The row of a committed message is missing: an operator decides."""


class Refused(StrEnum):
    """The scope of a permanent refusal, according to Kafka's error."""

    RECORD = "record"
    """This record: later records of its topic and key must wait."""
    TOPIC = "topic"
    """Every record of the topic."""


class Refusal(NamedTuple):
    """A record that Kafka refuses permanently: its place in the batch, and Kafka's error."""

    place: int
    error: str
    refused: Refused
    named: bool = False
    """It is this record; otherwise it may be another one that was sent together with it."""


class Identity(NamedTuple):
    """The identity of the Kafka cluster, the progress topic and PostgreSQL."""

    cluster_id: str
    topic_id: str
    pg_system_id: str


def number_of(gen: int) -> int:
    """Return the number of the transactional id of a generation."""
    return gen >> GEN_BITS


def first_gen(number: int) -> int:
    """Return the generation before those that use the transactional id of this number."""
    return number << GEN_BITS


class Cursor(NamedTuple):
    """A consistent pair: the position, and the manifest that comes next (a lower bound)."""

    position: Position
    manifest_offset: int
    batch_no: int
    crc: int
    gen: int
    """Counts the owners of the shard; its upper half is the number of the transactional id."""

    @property
    def number(self) -> int:
        """The number of the transactional id that this generation uses."""
        return number_of(self.gen)


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


class Relay(Struct, frozen=True, kw_only=True):
    """The state of one shard's relay."""

    shard: int
    phase: Phase = Phase.IDLE
    halt: HaltReason | None = None
    installation: UUID | None = None
    identity: Identity | None = None
    number: int = 0
    """Of the transactional id that it fences and uses: the last that it has seen in use."""
    owned: int | None = None
    """The generation that it has stored since it was IDLE; until then it has not owned the id."""
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
    failures: int = 0
    dirty: bool = False
    """The cursor is after the stored one."""
    saved_at: float | None = None
    awaited: bool = False
    """A caller waits for something after the stored cursor."""
    signed_at: float | None = None
    """When the last manifest was written."""
    suspects: int = 0
    """RUN: this number of next commits has failed together; the next batch is half of them."""
    release_suspects: int = 0
    """RUN: the same of the held records that are due."""
    released_last: bool = False
    """The last batch was a release: waiting commits come first now."""

    @property
    def at(self) -> Cursor:
        """The cursor, in the phases that have one (from REPLAY on)."""
        return require(self.cursor)

    @property
    def who(self) -> Identity:
        """The verified identity, in the phases that have one (from FENCE on)."""
        return require(self.identity)

    def next_manifest(self, kind: Kind, to: Position, entries: tuple[Entry, ...]) -> Manifest:
        """Return the manifest of the next batch, from the cursor's position up to ``to``."""
        return Manifest(
            installation=require(self.installation),
            shard=self.shard,
            gen=self.at.gen,
            kind=kind,
            batch_no=self.at.batch_no + 1,
            prev_crc=self.at.crc,
            after=self.at.position,
            to=to,
            entries=entries,
        )


def require(value: _T | None) -> _T:
    """Return a value that the phase guarantees; AssertionError is a defect of the protocol."""
    if value is None:
        raise AssertionError("the protocol reached a phase without a value that it needs there")
    return value
