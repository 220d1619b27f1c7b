"""The base models of request bodies."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from api.http.wire_types import ReasonText, Word
from api.ingest.schemas import GROUP_PATTERN
from outbox.access import Caller
from outbox.operators.message_view import OperatorAction

GroupName = Annotated[str, StringConstraints(pattern=GROUP_PATTERN)]


def _allow_nulls(schema: dict[str, Any]) -> None:
    """Say of each member that may be absent that it may be null."""
    for name in schema["properties"].keys() - schema.get("required", ()):
        member = schema["properties"][name]
        if "anyOf" not in member:
            default = {"default": member.pop("default")}
            schema["properties"][name] = {"anyOf": [member, {"type": "null"}], **default}


class StrictBody(BaseModel):
    """A request body: unknown members are refused, no value is converted, null means absent."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_allow_nulls)

    @model_validator(mode="before")
    @classmethod
    def _omit_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


class OperatorRequest(StrictBody):
    """The operator and the reason; both are written to the audit log."""

    operator: Word
    reason: ReasonText

    def action_of(self, caller: Caller) -> OperatorAction:
        """Return who intervenes and why, with the key of the caller."""
        return OperatorAction(operator=self.operator, reason=self.reason, key_id=caller.key_id)
