"""The answers of the driver: the result of the last action of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from outbox.messages.manifest import Kind, Position
from outbox.messages.offset_run import OffsetRuns
from outbox.relay.protocol.state import (
    Failure,
    Found,
    Identity,
    Progress,
    Refused,
    SignsOfLife,
    Visible,
)

UNKNOWN_OFFSET: Final = -1
"""Kafka has not acknowledged the record, or did not say where it is."""


@dataclass(frozen=True, slots=True)
class Rested:
    """The rest is over (or the relay has just started)."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The process stops cleanly."""


@dataclass(frozen=True, slots=True)
class LockTaken:
    """We hold the shard's lock in PostgreSQL: this is for liveness, not safety."""


@dataclass(frozen=True, slots=True)
class LockBusy:
    """Another session holds the lock."""

    at: float
    signs: SignsOfLife
    waiting: bool
    """Commits after the stored position or due held records wait, and no operator has to act."""


@dataclass(frozen=True, slots=True)
class StoresIdentified:
    """The answer to IdentifyStores."""

    installation: UUID
    identity: Identity
    partitions: int
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Fenced:
    """Every older handle is fenced, and every older transaction is complete."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The answer to ReadBounds; ``end`` counts uncommitted records and markers as well."""

    progress: Progress | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ManifestsRead:
    """The next manifests; ``reached`` when nothing is left below the requested end."""

    found: tuple[Found, ...]
    reached: bool
    waited: float = 0.0
    """The seconds until then; the broker answered."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer to Compare."""

    message_ids: tuple[bytes, ...]
    below_watermark: bool
    held: frozenset[bytes]
    """Message ids of the manifest that have a row in ``held_record``."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """PostgreSQL has the batch now."""


@dataclass(frozen=True, slots=True)
class CommitsRead:
    """The next committed messages, in commit order; none when there is nothing to do."""

    at: float
    to: Position
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]
    """The ids that Kafka already has (``already_published``)."""
    held: frozenset[bytes] = frozenset()
    """The ids that have a row in ``held_record`` or whose scope has an open one."""
    due: bool = False
    """A scope of held messages at or below the position is due for a retry."""
    visible: Visible | None = None
    """The last batch of this owner that consumers see; None: not known."""
    is_gone: bool = False
    """A log that one of this owner's batches is in is gone, so nobody will see that batch."""
    awaited: bool = False
    """A caller waits until one of them is published: the progress is then saved soon."""


@dataclass(frozen=True, slots=True)
class HeldRead:
    """The answer to ReadHeld; no messages when nothing is due any more."""

    kind: Kind
    message_ids: tuple[bytes, ...]
    before: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class BatchesSettled:
    """The answer to Settle."""

    hanging: tuple[tuple[str, int], ...]
    """Partitions with an open transaction of the shard."""
    absent: tuple[bytes, ...]
    """Messages that the manifests list as published, and that no consumer will ever see."""
    proven: bool
    """All batches were read to their end."""
    doubtful: bool = False
    """If not proven: consumers may see messages that would be published next."""
    known: Found | None = None
    """The messages that consumers see although their manifest was aborted, as a manifest."""
    unprovable: tuple[bytes, ...] = ()
    """Messages that are missing too; consumers may have seen their records, which expired."""


@dataclass(frozen=True, slots=True)
class OpenManifestsRead:
    """The answer to ReadOpenManifests."""

    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Marked:
    """The answer to MarkReleased."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The number of acknowledged records, a permanent refusal, if any, and the manifest's place."""

    good: int
    refused: Refused | None
    named: bytes | None = None
    """The message that Kafka names in its refusal; None: it is one of those not acknowledged."""
    alike: tuple[bytes, ...] = ()
    """The other messages that Kafka names in that refusal."""
    runs: OffsetRuns | None = None
    """Where the acknowledged records are; None if an offset is not known."""
    offset: int = UNKNOWN_OFFSET
    """The manifest's."""
    crc: int = 0
    """The manifest's checksum."""


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """The commit returned without an error."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The action failed; the actions after it were not executed."""

    failure: Failure


Answer = (
    Rested
    | StopAsked
    | LockTaken
    | LockBusy
    | StoresIdentified
    | Fenced
    | Bounds
    | ManifestsRead
    | Compared
    | Recovered
    | CommitsRead
    | HeldRead
    | Marked
    | BatchesSettled
    | OpenManifestsRead
    | Delivered
    | CommitEnded
    | Failed
)
