"""Findings of the audit: as they are stored from run to run, and as operators read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from outbox.messages.message_id import HalfId

FindingKind = Literal[
    "missing",
    "duplicate",
    "unexpected",
    "mismatch",
    "disordered",
    "coverage",
]
UNREAD_CAUSES: Final = (
    "UNVERIFIABLE/not_read",
    "UNVERIFIABLE/open_transaction",
    "LOG_CHANGED/recreated",
)
"""Causes that no accepted finding settles: a later run does, or the acceptance of a topic."""
PERMANENT_CAUSES: Final = (
    "ORPHAN/rolled_back",
    "ORPHAN/unknown",
    "ORPHAN/forgotten",
    "FOREIGN/record",
    "DUPLICATE/repeated",
    "WRONG_PLACE/partition",
    "WRONG_OFFSET/recorded",
    "ORDER_INVERSION/key",
    "POSITION_DRIFT/header",
    "UNVERIFIABLE/expired",
    "LOG_CHANGED/truncated",
    "MANIFEST_BREAK/chain",
)
"""Causes of what nothing undoes. A run that does not see such a finding again proves nothing: its
evidence has expired, was compacted, or cannot be judged any more. So the finding stays open."""
RENEWED_CAUSES: Final = (
    "UNPUBLISHED/overdue",
    "UNVERIFIABLE/not_read",
    "UNVERIFIABLE/open_transaction",
    "LOG_CHANGED/partitions",
)
"""Causes that every run judges anew, whatever it reads."""
REPAIRABLE_CAUSES: Final = (
    "LOST/published",
    "LOST/skipped",
    "ALTERED/value",
    "ALTERED/key",
    "ALTERED/header",
    "WRONG_PLACE/topic",
)
"""Causes whose message can be published again: no record has its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """A finding as one run saw it; ``detail`` is which cause of its class it has.

    ``evidence`` is without any value.
    """

    finding_id: str
    kind: str
    finding_class: str
    detail: str
    severity: str
    half_id: HalfId | None
    topic: str | None
    evidence: Mapping[str, Any]
    status: str = "open"
    """The current status; a run saves each finding as open."""

    @property
    def cause(self) -> str:
        """Its class and its detail."""
        return f"{self.finding_class}/{self.detail}"

    @property
    def message_id(self) -> str | None:
        """The id of the message that it is about, if it is about one."""
        return self.evidence.get("message_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedFinding(StoredFinding):
    """A stored finding with its current status and its history."""

    first_run_id: str
    last_run_id: str
    found_at: datetime
    updated_at: datetime
    accepted_until: datetime | None
    """Set while the status is accepted. After it the finding is open again if a run sees it."""
    history: Sequence[Mapping[str, Any]]
    """The last changes, oldest first: ``at``, ``event``, ``run_id``, and the class, detail,
    severity and status after it. ``run_id`` is null if an operator made the change."""


class OpenFindingCount(NamedTuple):
    """The number of open findings per kind, severity and topic; the topic may be empty."""

    kind: str
    severity: str
    topic: str
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChanges:
    """The difference between the open findings of a run and those stored before it."""

    new: int
    resolved: int
    """Findings that were open and are not seen any more, without those that a repair fixed."""
    fixed: int = 0
    unverifiable: int = 0
    """Findings that were open and that no run can verify any more: their evidence has expired."""
    known_ids: frozenset[str] = field(default=frozenset(), compare=False)
    """The findings of the run that were open or accepted before it."""
    closed_by_cause: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The number of findings of each cause that the run closes as resolved or fixed."""
    unverifiable_by_cause: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The number of findings of each cause that become unverifiable."""


def first_of_each_cause(
    reported: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return of each cause that is shown the first finding of the report, which says what to do.

    Both are in the form of the API. A run whose report is no longer kept has nothing ``reported``.
    """
    listed = {each["finding_id"] for each in shown}
    first: dict[tuple[str, str], Mapping[str, Any]] = {}
    for each in reported:
        if each["finding_id"] in listed:
            first.setdefault((each["class"], each["detail"]), each)
    return list(first.values())
