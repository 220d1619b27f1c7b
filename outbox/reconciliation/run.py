"""Runs of the audit and the checkpoint between two, as they are stored and as they are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from outbox.messages.message_id import HalfId
from outbox.reconciliation.finding import StoredFinding
from outbox.reconciliation.log import Partition

Verdict = Literal["clean", "findings", "inconclusive"]


class ReportFormat(StrEnum):
    """A format in which the report of a run is kept."""

    HTML = "html"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """Where the previous run ended."""

    run_id: str
    cut: Mapping[str, Any]
    """A JSON object that only the reconciliation writes and reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointUpdate:
    """The next checkpoint; it is stored in the transaction that stores the run."""

    after: str | None
    """The run whose checkpoint this run continued; None for the first run."""
    cut: Mapping[str, Any]
    positions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Per shard, the position up to which it is audited: transaction id and place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredEvidence:
    """What a run cannot verify: no store keeps the evidence any more, or the run leaves it out."""

    half_ids: Sequence[HalfId] = ()
    """Messages that were not settled before their halves were retired or their records expired."""
    starts: Mapping[Partition, int] = field(default_factory=dict)
    """The first offset that each partition still has; no run finds a record before it."""
    excluded_topics: Collection[str] = ()
    """The topics that the run does not read; findings about their content stay as they are."""
    excused: Collection[str] = ()
    """Findings that the present rules of their topics do not know."""
    unlisted: Sequence[HalfId] = ()
    """Messages without a record that are older than the manifests: they stay missing if they were.
    """
    continued: bool = False
    """The run has read only what is new, so it closes only findings of RENEWED_CAUSES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """Everything that a run stores, in one transaction."""

    run_id: str
    row: Mapping[str, Any]
    """The other columns of its row, except the time at which it finished."""
    complete: bool
    """The whole plan was read. So a finding that was not seen again is resolved."""
    findings: tuple[StoredFinding, ...]
    reports: Mapping[str, str]
    """The text of the report by format: html, json, csv."""
    checkpoint: CheckpointUpdate | None = None
    """Without an update the last checkpoint stays."""
    expired_evidence: ExpiredEvidence = field(default_factory=ExpiredEvidence)
    """Its findings become unverifiable if they are not seen again, also after a partial run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished run; ``totals`` is the number of its open findings by kind."""

    run_id: str
    previous_run_id: str | None
    mode: str
    started_at: datetime
    cut_at: datetime
    verdict: Verdict
    sentence: str
    totals: Mapping[str, int]
    finished_at: datetime
    reports: Sequence[str]
    """The formats in which its report is still kept."""

    @property
    def open_findings(self) -> int:
        """The number of findings above info that it left open."""
        return sum(self.totals.values())


class LastRun(NamedTuple):
    """What the metrics show of the newest run."""

    verdict: str
    succeeded_at: datetime
    cut_age: float
    """Seconds since the cut."""
    coverage: float | None
    """The part of the plan that was read, 0 to 1."""
    inconclusive: int
    """The number of consecutive inconclusive runs that end with this run."""
