"""The wire models of API keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.admin.models.base import StrictBody
from api.admin.models.page import PageQuery
from api.http.wire_types import NO_NUL, KeyGroup, Moment, Word
from outbox.access import LONGEST_KEY_NAME, MOST_KEY_GROUPS, ApiKey, Scope


class KeyRequest(StrictBody):
    """A new API key: its purpose, its producer groups and its scopes."""

    name: Annotated[
        str, StringConstraints(min_length=1, max_length=LONGEST_KEY_NAME, pattern=NO_NUL)
    ]
    producer_groups: list[KeyGroup] = Field(min_length=1, max_length=MOST_KEY_GROUPS)
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(min_length=1, max_length=9)
    expires_at: Moment | None = None


class KeyQuery(PageQuery):
    """The page of a list; ``refused``: keys that have ended and that somebody used lately."""

    refused: bool = False


class RevokeQuery(BaseModel):
    """Who revokes a key, for the audit log."""

    model_config = ConfigDict(extra="forbid")

    operator: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey(ApiKey):
    """A new key, with the token, which is returned only here."""

    api_key: str
