"""The answers of the driver: the result of the last action of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from outbox.messages.manifest import Kind, Position
from outbox.messages.record import Committed
from outbox.relay.protocol.state import (
    Failure,
    Found,
    Identity,
    Progress,
    Refused,
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
class Stored:
    """The answer to Recover and MarkReleased: PostgreSQL has the batch or the marks now."""


class Commits(NamedTuple):
    """The next committed messages of a shard, in commit order; none when there is nothing to do."""

    to: Position
    message_ids: tuple[bytes, ...] = ()
    messages: Sequence[Committed] = ()
    before: frozenset[bytes] = frozenset()
    """The ids that Kafka already has (``already_published``)."""
    held: frozenset[bytes] = frozenset()
    """The ids that have a row in ``held_record`` or whose scope has an open one."""
    due: bool = False
    """A scope of held messages at or below the position is due for a retry."""
    awaited: bool = False
    """A caller waits until one of them is published: the progress is then saved soon."""
    ages: tuple[float, ...] = ()
    """Seconds since the first and the last of them were decided, by PostgreSQL's clock."""
    clock_ms: int = 0
    """PostgreSQL's time when they were read: the timestamp of their records."""
    at: float = 0.0
    """The relay's monotonic time when they were read."""


class HeldBatch(NamedTuple):
    """The first messages of a held scope that is due, in commit order; none when nothing is due."""

    kind: Kind = Kind.RELEASE
    message_ids: tuple[bytes, ...] = ()
    messages: Sequence[Committed] = ()
    before: frozenset[bytes] = frozenset()
    redriven: str | None = None
    """The operator's action that ordered to publish them again, if any."""
    clock_ms: int = 0
    """PostgreSQL's time when they were read: the timestamp of their records."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The number of acknowledged records, a permanent refusal, if any, and the manifest's place."""

    good: int
    refused: Refused | None
    named: bytes | None = None
    """The message that Kafka names in its refusal; None: it is one of those not acknowledged."""
    alike: tuple[bytes, ...] = ()
    """The other messages that Kafka names in that refusal."""
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
    | Stored
    | Commits
    | HeldBatch
    | Delivered
    | CommitEnded
    | Failed
)
