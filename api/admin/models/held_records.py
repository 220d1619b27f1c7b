"""The wire models of held records."""

from __future__ import annotations

from pydantic import BaseModel

from api.admin.models.page import PageQuery
from api.http.wire_types import TopicText


class HeldQuery(PageQuery):
    """The filters of a list, and its page; ``refused``: without those that only wait."""

    topic: TopicText | None = None
    refused: bool = False
    dropped: bool = False


class SettledRecord(BaseModel):
    """A record that an operator released or dropped."""

    message_id: str
    released: bool
    dropped: bool
