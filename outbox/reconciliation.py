"""What the reconciliation asks both stores, and what it leaves behind: plain values.

The reconciliation believes the two stores alone, so these are facts as they stand there, not
conclusions. Pure: no I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from outbox.message import DecidedBy, HalfMessage, Resolution
from outbox.message_id import HalfId

UNREAD_CLASSES: Final = frozenset({"NOT_READ", "LSO_STUCK", "RETENTION_GAP", "TOPIC_RECREATED"})
"""The classes of findings that say what a run could not read; nobody can accept one as read."""


REPAIRABLE_CLASSES: Final = (
    *("LOST", "SKIPPED"),
    *("WRONG_TOPIC", "WRONG_KEY", "CORRUPT_VALUE", "HEADER_DRIFT"),
)
"""The classes of findings whose message can be published again: without a record of its content."""


class Partition(NamedTuple):
    """One partition of a Kafka topic."""

    topic: str
    number: int


ANY_PARTITION: Final = -1
"""The number that stands for a topic as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic as the brokers describe it."""

    id: str
    """Given when the topic is made; another one after it was deleted and made anew."""
    partitions: int
    compacts: bool = False
    """Its cleanup.policy names ``compact``, as far as we may read it."""


class LogEnd(StrEnum):
    """Which offset of a partition is asked for."""

    START = "start"
    HIGH_WATERMARK = "high_watermark"
    LAST_STABLE = "last_stable"
    """The offset below which every transaction has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """The offsets that could be read, and why the others could not."""

    offsets: Mapping[Partition, int]
    errors: Mapping[Partition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One record read again by its offset, to compare it field by field; never stored."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    stamped_by: str | None = None
    """Whose clock its time is of: the relay's (``CreateTime``) or the broker's."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """A finding as it is kept from run to run; ``detail`` holds its evidence, no value."""

    finding_id: str
    kind: str
    finding_class: str
    severity: str
    half_id: HalfId | None
    topic: str | None
    detail: Mapping[str, Any]


class CarriedRow(NamedTuple):
    """One thing that a run left open, for the next one to judge again; no key, no value."""

    side: str
    """What it is: commit, record, listing or finding."""
    half_id: HalfId | None
    facts: str
    """A JSON object, written and read by the reconciliation alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Where the run before ended; without a ``cut`` the next one reads everything."""

    run_id: str
    cut: Mapping[str, Any] | None
    carried: tuple[CarriedRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStep:
    """How a run moves the last cut on, in the transaction that stores the run."""

    after: str | None
    """The run that this one began at; None for the first."""
    cut: Mapping[str, Any] | None
    carried: Sequence[CarriedRow] = ()
    positions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Up to where each shard is audited: transaction id and place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What no run can settle any more, because a store no longer keeps it."""

    half_ids: Sequence[HalfId] = ()
    """Messages that went unsettled: their halves were retired, or their records expired."""
    starts: Mapping[Partition, int] = field(default_factory=dict)
    """Where the log of each partition begins: nobody finds a record below it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What one run leaves in the database, written in one transaction."""

    run_id: str
    mode: str
    started_at: datetime
    cut_at: datetime
    verdict: str
    sentence: str
    complete: bool
    """The whole plan was read, so that findings not seen again are resolved."""
    plan: Mapping[str, Any]
    counts: Mapping[str, int]
    totals: Mapping[str, int]
    timings: Mapping[str, float]
    findings: tuple[StoredFinding, ...]
    reports: Mapping[str, str]
    """The report's text by format: html, json, md, csv."""
    previous_run_id: str | None = None
    step: ChainStep | None = None
    """Without one the last cut stays where it is."""
    gone: Gone = field(default_factory=Gone)
    """Findings about it that are not seen again are unverifiable, also after a partial run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at both stores between two runs says of some findings; all else is dropped."""

    after: str | None
    """The run at whose cut it began."""
    finding_ids: Sequence[str]
    """Those that are asked for; what has closed meanwhile or is accepted stays as it is."""
    seen: Sequence[StoredFinding]
    """All that it saw."""
    complete: bool
    """The whole plan was read, so that findings not seen again are resolved."""
    gone: Gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is different from the run before."""

    new: int
    resolved: int
    """How many that were open are gone, those apart that a repair has fixed."""
    fixed: int = 0
    unverifiable: int = 0
    """How many that were open nobody can tell of any more: what would show it has expired."""
    known: frozenset[str] = field(default=frozenset(), compare=False)
    """Those of the run's findings that were open before."""
    closed: Mapping[str, int] = field(default_factory=dict, compare=False)
    """How many findings of each class this run closes as resolved or fixed."""
    expired: Mapping[str, int] = field(default_factory=dict, compare=False)
    """How many of each class are unverifiable from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A finished run in the row of runs; ``open`` counts its discrepancies."""

    run_id: str
    finished_at: datetime
    verdict: str
    open: int


class FindingStatus(NamedTuple):
    """What has become of a finding."""

    finding_id: str
    finding_class: str
    severity: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBefore:
    """The newest run before another one, and which of the other's findings were open then."""

    run_id: str
    verdict: str
    open_before: frozenset[str]
