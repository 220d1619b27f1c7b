"""The actions of a plan, executed in order; the last answer starts the next step."""

from __future__ import annotations

from dataclasses import dataclass

from outbox.messages.manifest import Manifest, Position
from outbox.relay.protocol.state import Cursor, HaltReason, Identity, Refused


@dataclass(frozen=True, slots=True)
class TryLock:
    """Open the session and request the shard's lock, without waiting."""


@dataclass(frozen=True, slots=True)
class IdentifyStores:
    """Read the identity of Kafka, the progress topic and PostgreSQL, and the progress row."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Create and initialise a new handle, which fences every older one."""


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """Read the progress row, and the start and end of the shard's manifest log."""


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """Read committed manifests from an offset on, at most up to ``end``; maybe only some."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Read the ids of the commit log in (after, to], in one snapshot."""

    after: Position
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Recover:
    """Store a batch that Kafka has in PostgreSQL: one transaction, with the cursor."""

    manifest: Manifest
    offset: int
    cursor: Cursor
    identity: Identity


@dataclass(frozen=True, slots=True)
class SaveProgress:
    """Store the cursor and the places of its records, in one database transaction."""

    cursor: Cursor
    identity: Identity
    begins: bool = False
    """The cursor starts a generation, which no other relay may have started."""


@dataclass(frozen=True, slots=True)
class StoreHalt:
    """Store that the shard waits for an operator, and why."""

    reason: HaltReason


@dataclass(frozen=True, slots=True)
class ReadCommits:
    """Read the next committed messages after a position and below the watermark."""

    after: Position
    most: int | None = None
    """The limit of messages; None: the limit of a batch."""


@dataclass(frozen=True, slots=True)
class HoldRecords:
    """Store messages of the batch that was read last as held, in one database transaction.

    Only the owner of the stored generation may do so: the relay that fenced an older owner could
    have published the record already.
    """

    batch: Manifest
    message_ids: tuple[bytes, ...]
    refused: Refused | None
    """None: they only wait behind a refused message."""


@dataclass(frozen=True, slots=True)
class ReadHeld:
    """Read the first held messages of a due scope, at or below a position, in order."""

    position: Position
    most: int | None


@dataclass(frozen=True, slots=True)
class Postpone:
    """Store that a held message was refused again, and its next due time."""

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
    """Produce the records with status P of the batch that was read last, and then the manifest."""

    batch: Manifest
    apart: bool = False
    """The manifest only after each record was acknowledged; a refusal of one is reported then."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the Kafka transaction and measure the time."""


@dataclass(frozen=True, slots=True)
class DropHandle:
    """Drop the handle and ignore its later reports; never abort, purge or commit it again."""

    reason: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close the PostgreSQL session, which frees the lock."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing for some time: a round ends here."""

    seconds: float
    until_commits: bool = False
    """A commit in the shard ends the rest."""


Action = (
    TryLock
    | IdentifyStores
    | Fence
    | ReadBounds
    | ReadManifests
    | Compare
    | Recover
    | SaveProgress
    | StoreHalt
    | ReadCommits
    | HoldRecords
    | ReadHeld
    | Postpone
    | MarkReleased
    | Begin
    | Publish
    | Commit
    | DropHandle
    | CloseSession
    | Rest
)
