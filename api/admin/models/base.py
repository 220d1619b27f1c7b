"""The base models of request bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from api.http.wire_types import ReasonText, Word
from api.ingest.schemas import GROUP_PATTERN
from outbox.access import Caller
from outbox.operators.message_view import OperatorAction

GroupName = Annotated[str, StringConstraints(pattern=GROUP_PATTERN.replace(r"(?![\s\S])", "$"))]
"""``$`` is the very end of the text here, and this validator knows no lookahead."""


class StrictBody(BaseModel):
    """A request body: unknown members are refused, no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OperatorRequest(StrictBody):
    """The operator and the reason; both are written to the audit log."""

    operator: Word
    reason: ReasonText

    def action_of(self, caller: Caller) -> OperatorAction:
        """Return who intervenes and why, with the key of the caller."""
        return OperatorAction(operator=self.operator, reason=self.reason, key_id=caller.key_id)
