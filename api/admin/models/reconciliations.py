"""The wire models of reconciliations and their findings."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.admin.models.base import OperatorRequest
from api.admin.models.page import PageQuery
from api.http.wire_types import Moment, TopicText
from outbox.reconciliation.finding import FindingKind
from outbox.reconciliation.run import Verdict

FindingStatus = Literal["open", "resolved", "fixed", "accepted", "unverifiable"]
FindingChange = Literal[
    "found",
    "reopened",
    "refined",
    "resolved",
    "fixed",
    "unverifiable",
    "accepted",
]


class RunDocument(BaseModel):
    """A run with its findings, as ``outbox reconcile run -o json`` printed it; see its JSON Schema.

    If the report is no longer kept, ``findings`` is empty and the other members are left out.
    """

    model_config = ConfigDict(extra="allow")

    schema_version: int
    run_id: str
    verdict: Verdict
    sentence: str
    totals: dict[str, int]
    findings: list[dict[str, Any]]
    findings_omitted: int


class FindingQuery(PageQuery):
    """The filters of a run's findings, and their page."""

    kind: FindingKind | None = None
    finding_class: str | None = Field(None, pattern=r"^[A-Z_]{1,40}(/[a-z_]{1,40})?$")
    """CLASS or CLASS/detail."""
    status: FindingStatus | None = None
    topic: TopicText | None = None


class AcceptRequest(OperatorRequest):
    """Until when a finding is accepted, and why."""

    until: Moment


class FindingEventResource(BaseModel):
    """One change of a finding, and its values then; ``run_id`` is null for operators."""

    at: datetime
    event: FindingChange
    finding_class: str = Field(serialization_alias="class")
    detail: str
    severity: str
    status: FindingStatus
    run_id: str | None


class FindingResource(BaseModel):
    """A finding above info, with its current status and its last 50 changes, oldest first."""

    finding_id: str
    kind: str
    finding_class: str = Field(serialization_alias="class")
    detail: str
    severity: str
    status: str
    message_id: str | None
    topic: str | None
    first_run_id: str
    last_run_id: str
    found_at: datetime
    updated_at: datetime
    accepted_until: datetime | None
    evidence: dict[str, Any]
    history: list[FindingEventResource]
