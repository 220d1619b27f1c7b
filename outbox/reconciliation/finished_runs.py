"""Finished reconciliations as operators read them: plain values.

Pure: no I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple


class ReportFormat(StrEnum):
    """A form in which the report of a run is kept."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "md"
    CSV = "csv"


class RunPlace(NamedTuple):
    """Where a run stands in the list of runs, newest first."""

    finished_at: datetime
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A finished run as a list shows it; ``formats`` are the reports that are still kept."""

    run_id: str
    previous_run_id: str | None
    mode: str
    started_at: datetime
    cut_at: datetime
    finished_at: datetime
    verdict: str
    sentence: str
    complete: bool
    counts: Mapping[str, int]
    totals: Mapping[str, int]
    timings: Mapping[str, float]
    formats: tuple[str, ...]

    @property
    def place(self) -> RunPlace:
        """Where it stands in the list."""
        return RunPlace(self.finished_at, self.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """What is measured of the newest run; ages in seconds, ``coverage`` from 0 to 1."""

    verdict: str
    finished_at: datetime
    cut_age: float
    coverage: float | None
    counts: Mapping[str, int]
    timings: Mapping[str, float]
    latency: Mapping[str, Mapping[str, float]]
    """Publish latency in seconds by topic and quantile, of the run's sample."""
    dirty_ratio: float | None
    """How many of the compared ranges differed, 0 to 1; None where none were folded."""
    ever: Mapping[str, Mapping[str, int]]
    """How many findings were new and resolved in all runs and reruns up to it, each by kind."""
    inconclusive: int
    """How many runs in a row came to no verdict; 0 when the newest one did."""


class OpenFindings(NamedTuple):
    """How many findings of a kind, severity and topic are open; the topic may be empty."""

    kind: str
    severity: str
    topic: str
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFilter:
    """Which findings of a run are asked for; all given ones must match."""

    kind: str | None = None
    finding_class: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingEvent:
    """One change of a finding, with its class, severity and status after it."""

    at: datetime
    event: str
    finding_class: str
    severity: str
    status: str
    run_id: str | None
    """The run that changed it; None where a rerun or an operator did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """A finding above info as it stands now; ``detail`` is its evidence, without any value."""

    finding_id: str
    first_run_id: str
    last_run_id: str
    status: str
    kind: str
    finding_class: str
    severity: str
    topic: str | None
    detail: Mapping[str, Any]
    found_at: datetime
    updated_at: datetime
    accepted_until: datetime | None
    """Set while its status is accepted: from then on it is open again where a run sees it."""
    history: tuple[FindingEvent, ...]
    """Its last changes, oldest first."""
