"""The page of a list: its query, its model, and how a handler answers with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from api.http.page_token import decode_page_token, encode_page_token
from outbox.operators.message_view import ListPage

Row = TypeVar("Row")
Noun = TypeVar("Noun")


class PageQuery(BaseModel):
    """The page of a list without filters."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, max_length=512)

    @property
    def after(self) -> str:
        """The place where the page begins, "" for the first one. Raises Problem."""
        return "" if self.cursor is None else decode_page_token(self.cursor)


class Rows(BaseModel, Generic[Row]):
    """A list without pages."""

    data: list[Row]


class Page(Rows[Row], Generic[Row]):
    """One page of a list."""

    next_cursor: str | None
    has_more: bool


class ScannedPage(Page[Row], Generic[Row]):
    """One page, newest first; ``searched_back_to`` is where a filter's scan stopped."""

    searched_back_to: datetime | None


def page_of(found: Sequence[Noun], limit: int, place: Callable[[Noun], str]) -> dict[str, Any]:
    """Return a page of what was read with a limit of one more; ``place`` names a row's place."""
    shown, more = found[:limit], len(found) > limit
    cursor = encode_page_token(place(shown[-1])) if more else None
    return {"data": shown, "next_cursor": cursor, "has_more": more}


def scanned_page(page: ListPage[Noun]) -> dict[str, Any]:
    """Return a page of a list that looks at a slice, with where the slice ended."""
    cursor = None if page.next_before is None else encode_page_token(str(page.next_before))
    return {
        "data": page.data,
        "next_cursor": cursor,
        "has_more": cursor is not None,
        "searched_back_to": page.searched_back_to,
    }
