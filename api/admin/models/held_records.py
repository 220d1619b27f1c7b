"""The wire models of held records."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from api.admin.models.page import Page, PageQuery
from api.http.wire_types import NO_NUL


class HeldQuery(PageQuery):
    """The filters of a list, and its page; ``refused``: without those that only wait."""

    topic: Annotated[str, Field(min_length=1, max_length=249, pattern=NO_NUL)] | None = None
    refused: bool = False
    dropped: bool = False


class HeldRecordResource(BaseModel):
    """A committed message that Kafka refuses, or that waits behind a refused one.

    ``topic_wide``: Kafka refuses the whole topic, otherwise only the key waits. ``attempts`` is 0
    while the record only waits; ``waiting_behind`` counts those that wait for it, up to 1 000.
    """

    message_id: str
    topic: str
    topic_wide: bool
    held_at: datetime
    publish_error: str
    attempts: int
    next_attempt_at: datetime
    waiting_behind: int
    dropped_at: datetime | None
    drop_reason: str | None


class HeldRecordPage(Page[HeldRecordResource]):
    """Held records, the oldest first."""


class SettledRecord(BaseModel):
    """A record that an operator released or dropped."""

    message_id: str
    released: bool
    dropped: bool
