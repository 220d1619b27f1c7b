"""What one snapshot of the audited database says of messages and shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from outbox.messages.message import DecidedBy, HalfMessage, Resolution


class RelayCut(NamedTuple):
    """How far a shard has come by the relay's own row: everything there was acknowledged before."""

    shard: int
    xid: int
    n: int
    batch_no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcAddress:
    """The source database as a JVM names it."""

    url: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotIdentity:
    """An exported snapshot: its id for importers, its content to compare, the database's time."""

    exported_id: str
    visible: str
    taken_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHalf:
    """A half message as the snapshot knows it; ``decision`` None is PREPARED or PARKED."""

    half: HalfMessage
    parked: bool
    decision: Resolution | None = None
    decided_by: DecidedBy | None = None
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A committed message that Kafka refuses, or that waits behind such a one."""

    publish_error: str
    held_at: datetime
    attempts: int
    waiting: int
    """How many messages of its shard are held as well."""
    released: bool
    dropped: bool
    repaired: bool = False
    """An operator ordered it to be published again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlace:
    """Where the relay wrote down that Kafka had put a record; evidence, never believed."""

    partition: int
    offset: int
    batch_no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """How many half messages have no decision in the snapshot."""

    prepared: int
    parked: int
