"""The wire models of the cold routes (pydantic); the hot ones are in ``schemas``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.http.wire_types import NO_NUL, AllowedTopic, Count, KeyGroup, Moment, Operator, Reason
from api.ingest.schemas import GROUP_PATTERN
from outbox.access import Scope
from outbox.checks.check_round import Outcome
from outbox.checks.ssrf_guard import LONGEST_URL
from outbox.messages.message import DecidedBy, Resolution, State


class Asked(BaseModel):
    """A request body: unknown members are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OperatorRequest(Asked):
    """Who intervenes, and why; both go into the audit log."""

    operator: Operator
    reason: Reason


class ForceEndRequest(OperatorRequest):
    """An operator's decision."""

    decision: Literal["COMMIT", "ROLLBACK"]


class ReasonRequest(Asked):
    """Why a group is paused or resumed."""

    reason: Reason


class RotateRequest(Asked):
    """How long the previous secret still signs, in seconds."""

    overlap_seconds: int = Field(86_400, ge=0, le=604_800)


class GroupRequest(Asked):
    """A producer group's settings; the whole object is replaced."""

    check_url: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL)]
    check_interval_seconds: int = Field(30, ge=1, le=86_400)
    check_max: int = Field(15, ge=1, le=1000)
    check_timeout_seconds: int = Field(5, ge=1, le=30)
    transaction_timeout_seconds: int = Field(6, ge=1, le=3600)
    on_check_max: Literal["park", "rollback"] = "park"
    backoff: Literal["fixed", "exponential"] = "fixed"
    max_inflight: int = Field(8, ge=1, le=256)
    batch_check: bool = False
    check_payload: bool = False
    topics: list[AllowedTopic] = Field(default_factory=list, max_length=1000)
    max_age_seconds: int = Field(259_200, ge=60, le=2_592_000)


class GroupResource(BaseModel):
    """A producer group as it stands."""

    producer_group: str
    check_url: str
    check_interval_seconds: int
    check_max: int
    check_timeout_seconds: int
    transaction_timeout_seconds: int
    on_check_max: str
    backoff: str
    max_inflight: int
    batch_check: bool
    check_payload: bool
    topics: list[str]
    max_age_seconds: int
    paused: bool
    pause_reason: str | None
    breaker: str
    version: int
    created_at: datetime
    updated_at: datetime


class RegisteredGroup(GroupResource):
    """A group just created, with the signing secret that is shown this once."""

    check_secret: str


class GroupPage(BaseModel):
    """Groups in the order of their names."""

    data: list[GroupResource]
    next_cursor: str | None
    has_more: bool


class RotatedSecret(BaseModel):
    """The new signing secret, shown this once."""

    check_secret: str
    previous_expires_at: datetime


class MessageConditions(BaseModel):
    """The filters of a list or of a bulk action; all given ones must match."""

    model_config = ConfigDict(extra="forbid")

    state: State | None = None
    producer_group: str | None = Field(None, pattern=GROUP_PATTERN.replace(r"(?![\s\S])", r"$"))
    topic: str | None = Field(None, min_length=1, max_length=249, pattern=NO_NUL)
    transaction_id: str | None = Field(None, min_length=1, max_length=128, pattern=NO_NUL)
    key: str | None = Field(None, max_length=8192)
    tag: str | None = Field(None, min_length=1, max_length=64, pattern=NO_NUL)
    decided_by: DecidedBy | None = None
    prepared_from: Moment | None = None
    prepared_to: Moment | None = None
    min_checks: Count | None = None
    last_outcome: Outcome | None = None


class MessageQuery(MessageConditions):
    """The filters of a list, and which page of it."""

    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, max_length=256)


class PageQuery(BaseModel):
    """The page of a plain list."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, max_length=512)


class LastCheckResource(BaseModel):
    """The latest check."""

    at: datetime
    outcome: str
    http_status: int | None
    latency_ms: int


class PublicationResource(BaseModel):
    """Where Kafka put the record."""

    topic: str
    partition: int
    offset: int
    published_at: datetime


class MessageResource(BaseModel):
    """A message as it stands; payload members only with ``include=payload``."""

    message_id: str
    producer_group: str
    transaction_id: str | None
    topic: str
    partition: int | None
    state: State
    decision: Resolution | None
    decided_by: DecidedBy | None
    decided_at: datetime | None
    reason: str | None
    prepared_at: datetime
    next_check_at: datetime | None
    check_count: int
    last_check: LastCheckResource | None
    parked_at: datetime | None
    parked_reason: str | None
    content_type: str | None
    tags: list[str]
    value_bytes: int | None
    publication: PublicationResource | None
    publish_error: str | None
    headers: dict[str, str] | None = None
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None


class MessagePageResource(BaseModel):
    """One page of messages, newest first; ``searched_back_to`` where a filter's scan stopped."""

    data: list[MessageResource]
    next_cursor: str | None
    has_more: bool
    searched_back_to: datetime | None = None


class HistoryEventResource(BaseModel):
    """One event; further members depend on its type."""

    model_config = ConfigDict(extra="allow")

    seq: int
    at: datetime
    type: str


class HistoryResource(BaseModel):
    """What happened to a message, in order."""

    message_id: str
    events: list[HistoryEventResource]


class Rechecked(BaseModel):
    """A message that is due now."""

    message_id: str
    state: State
    next_check_at: datetime


class KeyRequest(Asked):
    """A new API key: what it is for, which groups it is bound to, what it may do."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=NO_NUL)]
    producer_groups: list[KeyGroup] = Field(min_length=1, max_length=1000)
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(min_length=1, max_length=9)
    expires_at: Moment | None = None


class KeyResource(BaseModel):
    """An API key without its secret."""

    key_id: str
    name: str
    producer_groups: list[str]
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None


class NewKeyResource(KeyResource):
    """A key just created, with the token that is shown this once."""

    api_key: str


class KeyPage(BaseModel):
    """Keys in the order of their ids."""

    data: list[KeyResource]
    next_cursor: str | None
    has_more: bool


class ProblemDocument(BaseModel):
    """RFC 9457, with our members; ``errors`` points at what is wrong in a request."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    retryable: bool
    request_id: str
    errors: list[dict[str, Any]] | None = None
