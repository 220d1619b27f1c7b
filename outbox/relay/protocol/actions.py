"""What the protocol wants done. The driver performs a plan in order; the last answer leads on."""

from __future__ import annotations

from dataclasses import dataclass

from outbox.messages.manifest import Manifest, Position
from outbox.relay.protocol.state import Cursor, HaltReason, Identity, Refused


@dataclass(frozen=True, slots=True)
class TryLock:
    """Open the session and ask for the shard's lock, without waiting."""


@dataclass(frozen=True, slots=True)
class TerminateHolder:
    """End the session of an owner that holds the lock and does nothing."""


@dataclass(frozen=True, slots=True)
class IdentifyStores:
    """Read who Kafka, the progress topic and PostgreSQL are, and the progress row."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Make a new handle and initialise it, which fences every older one."""


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """Read the progress row, and where the shard's manifest log starts and ends."""


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """Read committed manifests from an offset, some of them, at most up to ``end``."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Read the ids of the commit log in (after, to], in one snapshot."""

    after: Position
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Recover:
    """Teach PostgreSQL a batch that Kafka has: one database transaction, cursor included."""

    manifest: Manifest
    offset: int
    cursor: Cursor
    identity: Identity


@dataclass(frozen=True, slots=True)
class SaveProgress:
    """Store the cursor and where its records lie, in one database transaction."""

    cursor: Cursor
    identity: Identity
    begins: bool = False
    """It begins a generation, which nobody else may have begun."""


@dataclass(frozen=True, slots=True)
class StoreHalt:
    """Store that the shard waits for an operator, and why."""

    reason: HaltReason


@dataclass(frozen=True, slots=True)
class ReadCommits:
    """Read the next committed messages after a position and below the watermark."""

    after: Position
    most: int | None = None
    """At most so many; None: as many as a batch may hold."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Store messages of the batch that was read last as held, in one database transaction.

    Only the owner whose generation is the stored one may: a record held by a relay that another
    one has fenced could have been published by it.
    """

    batch: Manifest
    message_ids: tuple[bytes, ...]
    refused: Refused | None
    """None: they only wait behind a refused one."""


@dataclass(frozen=True, slots=True)
class ReadHeld:
    """Read the first held messages of a scope that is due, at or below a position, in order."""

    position: Position
    most: int | None


@dataclass(frozen=True, slots=True)
class Postpone:
    """Store that a held message was refused once more, and when it is due again."""

    message_id: bytes
    refused: Refused


@dataclass(frozen=True, slots=True)
class MarkReleased:
    """Mark a release's messages as published and move the cursor, in one database transaction."""

    manifest: Manifest
    cursor: Cursor
    identity: Identity


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin a Kafka transaction."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Produce the records of the batch that was read last, those with status P, and flush."""

    batch: Manifest


@dataclass(frozen=True, slots=True)
class PublishManifest:
    """Produce the manifest and flush."""

    batch: Manifest


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the Kafka transaction and tell how long that took."""


@dataclass(frozen=True, slots=True)
class DropHandle:
    """Forget the handle and whatever it still reports; never abort, purge or commit it again."""

    reason: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close the PostgreSQL session, which frees the lock."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing for a while: a round ends here."""

    seconds: float
    until_commits: bool = False
    """A commit in the shard ends the rest."""


Action = (
    TryLock
    | TerminateHolder
    | IdentifyStores
    | Fence
    | ReadBounds
    | ReadManifests
    | Compare
    | Recover
    | SaveProgress
    | StoreHalt
    | ReadCommits
    | Hold
    | ReadHeld
    | Postpone
    | MarkReleased
    | Begin
    | Publish
    | PublishManifest
    | Commit
    | DropHandle
    | CloseSession
    | Rest
)
