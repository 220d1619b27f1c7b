"""What a run leaves in the database, and what the next run continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import Partition

UNREAD_CLASSES: Final = frozenset({"NOT_READ", "LSO_STUCK", "RETENTION_GAP", "TOPIC_RECREATED"})
"""The classes of findings that say what a run could not read; nobody can accept one as read."""


REPAIRABLE_CLASSES: Final = (
    *("LOST", "SKIPPED"),
    *("WRONG_TOPIC", "WRONG_KEY", "CORRUPT_VALUE", "HEADER_DRIFT"),
)
"""The classes of findings whose message can be published again: without a record of its content."""


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
