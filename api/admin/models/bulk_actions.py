"""The wire models of bulk actions."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from api.admin.models.base import OperatorRequest
from api.admin.models.half_messages import MessageConditions
from api.http.wire_types import MessageId
from outbox.operators.bulk_actions import BulkKind, RefusedFinding

FindingId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class BulkConditions(MessageConditions):
    """The filter of a bulk action.

    ``finding_ids`` of a reconciliation are for ``republish``. All other actions take
    ``message_ids`` as their only filter; those that they cannot change do not match.
    """

    finding_ids: list[FindingId] | None = Field(
        None, min_length=1, max_length=10_000, fail_fast=True
    )
    message_ids: list[MessageId] | None = Field(None, min_length=1, max_length=1000)


class BulkRequest(OperatorRequest):
    """An action on every message that matches; ``decision`` is for ``force_end`` only.

    ``republish`` takes only ``finding_ids``. With ``accept_order`` it also takes messages that a
    newer one of their key has overtaken. After ``delay_seconds`` the action begins; until then, and
    while it runs, it can be cancelled.
    """

    action: Annotated[BulkKind, Field(strict=False)]
    decision: Literal["COMMIT", "ROLLBACK"] | None = None
    filter: Annotated[BulkConditions, Field(strict=False)]
    accept_order: bool = False
    delay_seconds: int = Field(0, ge=0, le=3600)
    dry_run: bool = False
    max_items: int = Field(1000, ge=1, le=100_000)

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        if (self.action is BulkKind.FORCE_END) != (self.decision is not None):
            raise ValueError("decision is required for force_end and allowed only there")
        republish = self.action is BulkKind.REPUBLISH
        given = self.filter.model_dump(exclude_none=True).keys()
        if republish != ("finding_ids" in given) or (republish and given != {"finding_ids"}):
            raise ValueError("finding_ids is required for republish, as the only filter")
        if "message_ids" in given and given != {"message_ids"}:
            raise ValueError("message_ids is allowed only as the only filter")
        if self.accept_order and not republish:
            raise ValueError("accept_order is allowed only for republish")
        return self


class DryRun(BaseModel):
    """The result of a dry run: how many messages match (``more`` above max_items), the first ids.

    ``refused`` lists the findings that ``republish`` would not change.
    """

    matched: int
    more: bool
    sample: list[str]
    refused: list[RefusedFinding] | None = None
