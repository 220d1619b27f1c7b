"""What one snapshot of the audited database shows of messages and shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from outbox.messages.message import DecidedBy, HalfMessage, Resolution
from outbox.messages.message_id import HalfId


class RelayCut(NamedTuple):
    """The position in the relay's row of a shard; everything up to it was acknowledged before."""

    shard: int
    xid: int
    n: int
    batch_no: int
    manifest_offset: int
    """Where its last manifest is."""


class RelayProgress(NamedTuple):
    """How far the relay of a shard had come at the snapshot."""

    batch_no: int
    """The last batch that its row names."""
    in_flight: int
    """The most batches that it can have published after that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcAddress:
    """The address of the source database for a JVM."""

    url: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotIdentity:
    """An exported snapshot: the id to import it, its content to compare, the database's time."""

    exported_id: str
    visible: str
    taken_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHalf:
    """A half message in the snapshot; ``decision`` is None for PREPARED and PARKED."""

    half: HalfMessage
    parked: bool
    decision: Resolution | None = None
    decided_by: DecidedBy | None = None
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHold:
    """A committed message that Kafka refuses, or that waits behind such a message."""

    publish_error: str
    held_at: datetime
    waiting: int
    """The number of held messages in its shard."""
    released: bool
    dropped: bool
    repair: str | None = None
    """The last order to publish it again."""
    release_batch_no: int | None = None
    """The batch that published it, if it was released."""
    released_partition: int | None = None
    """Where the relay recorded its release, if the relay knew that."""
    released_offset: int | None = None

    @property
    def repaired(self) -> bool:
        """Somebody ordered it to be published again."""
        return self.repair is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlace:
    """The partition and offset that the relay recorded for a record; compared, never trusted."""

    partition: int
    offset: int
    batch_no: int


class LoggedCommit(NamedTuple):
    """A committed message at its position in the commit log."""

    shard: int
    xid: int
    n: int
    committed_at: datetime
    half_id: HalfId
    digest: int | None


class ChangedCommit(NamedTuple):
    """A commit whose decision or half message is missing or another one than when it was made."""

    half_id: HalfId
    xid: int
    n: int
    committed_at: datetime
    digest: int
    """The digest in the commit log."""
    decided_in: int | None
    """The transaction of the decision."""
    half_digest: int | None
    """None: there is no row of the half message."""
    decision: Resolution | None
    """None: there is no row of the decision."""


class UndecidedCounts(NamedTuple):
    """The number of half messages without a decision in the snapshot."""

    prepared: int
    parked: int
