"""The wire models of half messages and their history, made from the library's values."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.admin.models.base import GroupName, OperatorRequest
from api.admin.models.page import PageQuery
from api.http.wire_types import NO_NUL, Count, HttpStatus, Moment, TopicText, Word
from outbox.checks.answer import Outcome
from outbox.messages.message import DecidedBy, State
from outbox.operators.message_view import NEVER_CHECKED

if TYPE_CHECKING:
    LastOutcome = str
else:
    LastOutcome = Literal[(*(each.value for each in Outcome), NEVER_CHECKED)]


class ForceEndRequest(OperatorRequest):
    """An operator's decision."""

    decision: Literal["COMMIT", "ROLLBACK"]


class MessageConditions(BaseModel):
    """The filters of a list or of a bulk action; a message must match all of them."""

    model_config = ConfigDict(extra="forbid")

    state: State | None = None
    producer_group: GroupName | None = None
    topic: TopicText | None = None
    transaction_id: Word | None = None
    key: str | None = Field(None, max_length=8192)
    tag: str | None = Field(None, min_length=1, max_length=64, pattern=NO_NUL)
    decided_by: DecidedBy | None = None
    prepared_from: Moment | None = None
    prepared_to: Moment | None = None
    min_checks: Count | None = None
    last_outcome: LastOutcome | None = None
    last_http_status: HttpStatus | None = None
    trace_id: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")


class MessageQuery(MessageConditions, PageQuery):
    """The filters of a list, and its page."""


class RecordResource(BaseModel):
    """A record in Kafka, and the message that it is."""

    message_id: str
    topic: str
    partition: int
    offset: int


class HistoryEventResource(BaseModel):
    """One event; further members depend on its type."""

    model_config = ConfigDict(extra="allow")

    seq: int
    at: datetime
    type: str


class HistoryResource(BaseModel):
    """The events of a message, in order."""

    message_id: str
    events: list[HistoryEventResource]


class Rechecked(BaseModel):
    """A message whose check is due now."""

    message_id: str
    state: State
    next_check_at: datetime
