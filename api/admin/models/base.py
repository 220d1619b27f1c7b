"""The base models of request bodies."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from api.http.wire_types import OperatorName, ReasonText
from outbox.access import Caller
from outbox.operators.message_view import OperatorAction


class StrictBody(BaseModel):
    """A request body: unknown members are refused, no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OperatorRequest(StrictBody):
    """The operator and the reason; both are written to the audit log."""

    operator: OperatorName
    reason: ReasonText

    def action_of(self, caller: Caller) -> OperatorAction:
        """Return who intervenes and why, with the key of the caller."""
        return OperatorAction(operator=self.operator, reason=self.reason, key_id=caller.key_id)
