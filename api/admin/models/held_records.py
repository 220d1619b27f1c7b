"""The wire models of held records."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from api.admin.models.page import PageQuery
from api.http.wire_types import NO_NUL


class HeldQuery(PageQuery):
    """The filters of a list, and its page; ``refused``: without those that only wait."""

    topic: Annotated[str, Field(min_length=1, max_length=249, pattern=NO_NUL)] | None = None
    refused: bool = False
    dropped: bool = False


class SettledRecord(BaseModel):
    """A record that an operator released or dropped."""

    message_id: str
    released: bool
    dropped: bool
