"""The problem document as a schema, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class ProblemDocument(BaseModel):
    """A problem (RFC 9457) with further members; ``errors`` points at each broken rule."""

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
