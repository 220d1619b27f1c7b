"""The wire models of producer groups."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.admin.models.base import StrictBody
from api.admin.models.page import PageQuery
from api.http.wire_types import AllowedTopic, CheckSecret, ReasonText, Word
from outbox.checks.producer_group import Backoff, OnCheckMax
from outbox.checks.ssrf_guard import LONGEST_URL
from outbox.http_checks.conformance import CaseResult


class ReasonRequest(StrictBody):
    """The reason to pause or resume a group, and who does it; both go into the audit log."""

    reason: ReasonText
    operator: Word | None = None


class RotateRequest(StrictBody):
    """How long the previous secret still signs, in seconds."""

    overlap_seconds: int = Field(86_400, ge=0, le=604_800)


class GroupSettings(BaseModel):
    """How a group is checked, and what it may write."""

    check_url: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL)]
    check_interval_seconds: int = Field(30, ge=1, le=86_400)
    check_max: int = Field(15, ge=1, le=1000)
    check_timeout_seconds: int = Field(5, ge=1, le=30)
    transaction_timeout_seconds: int = Field(6, ge=1, le=3600)
    on_check_max: OnCheckMax = Field(OnCheckMax.PARK, strict=False)
    backoff: Backoff = Field(Backoff.FIXED, strict=False)
    max_inflight: int = Field(8, ge=1, le=256)
    batch_check: bool = False
    check_payload: bool = False
    topics: tuple[AllowedTopic, ...] = Field((), max_length=1000, strict=False)
    max_age_seconds: int = Field(259_200, ge=60, le=2_592_000)


class GroupRequest(GroupSettings, StrictBody):
    """A producer group's settings; the whole object is replaced.

    ``check_secret``: the group's secret; if it is absent, a new group gets a fresh one.
    """

    check_secret: CheckSecret | None = Field(None, json_schema_extra={"writeOnly": True})


class NamedGroup(BaseModel):
    """The name of a producer group: the first member of its resource."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    producer_group: str = Field(validation_alias="name")


class GroupResource(GroupSettings, NamedGroup):
    """The current settings and status of a producer group."""

    paused: bool
    pause_reason: str | None
    paused_at: datetime | None
    paused_by: str | None
    breaker: str
    next_trial_at: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime


class RegisteredGroup(GroupResource):
    """A new group, with its fresh signing secret, which is returned only here."""

    check_secret: str | None


class GroupQuery(PageQuery):
    """The page of a list of groups; ``unasked``: only those paused, or with an open breaker."""

    unasked: bool = False


class EndpointTestResource(BaseModel):
    """The result of a test; ``outcome`` is the outcome that the signed check would have.

    It is ``certificate not trusted`` where such a check would be ``unreachable`` for that reason.
    """

    reachable: bool
    signature_accepted: bool
    forgery_refused: bool
    latency_ms: int
    outcome: str
    http_status: int | None


class SimulationRequest(StrictBody):
    """What a simulation may expect: the decision of a transaction that the endpoint knows."""

    transaction_id: Word | None = None
    expect: Literal["COMMIT", "ROLLBACK", "UNKNOWN"] = "COMMIT"


class SimulationResource(BaseModel):
    """Every case in the order of sending; ``passed``: all of them did."""

    passed: bool
    cases: list[CaseResult]
