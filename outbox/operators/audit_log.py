"""The audit log as operators read it: who intervened in what, and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel


class AuditEntry(BaseModel):
    """One intervention: who did what to which target, and why; ``message_id`` if it was one."""

    id: int
    at: datetime
    action: str
    target: str
    message_id: str | None
    key_id: str | None
    operator: str | None
    reason: str | None
    detail: Mapping[str, Any] | None
