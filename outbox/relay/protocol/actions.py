"""The actions of a plan, executed in order; the last answer starts the next step."""

from __future__ import annotations

from msgspec import Struct

from outbox.messages.manifest import Manifest, Position
from outbox.relay.protocol.state import Cursor, HaltReason, Refusal


class Action(Struct, frozen=True):
    """One action of a plan."""


class TryLock(Action, frozen=True):
    """Open the session and request the shard's lock, without waiting."""


class IdentifyStores(Action, frozen=True):
    """Read the identity of Kafka, the progress topic and PostgreSQL, and the progress row."""


class Fence(Action, frozen=True):
    """Create and initialise a new handle, which fences every older one."""

    number: int
    """Of the transactional id."""
    each_within: float
    """The time limit (s) of the fence of an id; the next id is fenced too."""


class LeaveTransactionalId(Action, frozen=True):
    """Store the generation that begins the next transactional id.

    Only the owner of the stored generation may do so.
    """

    gen: int
    """The stored one."""


class ReadBounds(Action, frozen=True):
    """Read the progress row, and the start and end of the shard's manifest log."""


class ReadManifests(Action, frozen=True):
    """Read committed manifests from an offset on, at most up to ``end``; maybe only some."""

    first: int
    end: int


class Compare(Action, frozen=True):
    """Read the ids of the commit log in (after, to], in one snapshot."""

    after: Position
    manifest: Manifest


class Recover(Action, frozen=True):
    """Store a batch that Kafka has in PostgreSQL: one transaction, with the cursor."""

    manifest: Manifest
    offset: int
    cursor: Cursor


class SaveProgress(Action, frozen=True):
    """Store the cursor and the places of its records, in one database transaction."""

    cursor: Cursor
    begins: bool = False
    """The cursor starts a generation, which no other relay may have started."""


class StoreHalt(Action, frozen=True):
    """Store that the shard waits for an operator, and why."""

    reason: HaltReason


class ReadCommits(Action, frozen=True):
    """Read the next committed messages after a position and below the watermark."""

    after: Position
    most: int | None = None
    """The limit of messages; None: the limit of a batch."""


class HoldRecords(Action, frozen=True):
    """Store messages of the batch that was read last as held, in one database transaction.

    Only the owner of the stored generation may do so: the relay that fenced an older owner could
    have published the record already.
    """

    batch: Manifest
    message_ids: tuple[bytes, ...]
    refusal: Refusal | None
    """None: they only wait behind a refused message."""


class ReadHeld(Action, frozen=True):
    """Read the first held messages of a due scope, at or below a position, in order."""

    position: Position
    most: int | None


class Postpone(Action, frozen=True):
    """Store that a held message was refused again, and its next due time."""

    message_id: bytes
    refusal: Refusal


class MarkReleased(Action, frozen=True):
    """Mark a release's messages as published and move the cursor, in one database transaction."""

    manifest: Manifest
    cursor: Cursor


class Publish(Action, frozen=True):
    """Begin a Kafka transaction; produce the records with status P, and then the manifest."""

    batch: Manifest
    apart: bool = False
    """The manifest only after each record was acknowledged; a refusal of one is reported then."""


class Commit(Action, frozen=True):
    """Commit the Kafka transaction and measure the time."""


class DropHandle(Action, frozen=True):
    """Drop the handle and ignore its later reports; never abort, purge or commit it again."""

    reason: str


class CloseSession(Action, frozen=True):
    """Close the PostgreSQL session, which frees the lock."""


class Rest(Action, frozen=True):
    """Do nothing for some time: a round ends here."""

    seconds: float
    until_commits: bool = False
    """A commit in the shard ends the rest."""
