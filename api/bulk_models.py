"""The wire models of bulk actions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from api.models import MessageConditions, OperatorRequest

FindingId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class BulkConditions(MessageConditions):
    """The filter of a bulk action; ``finding_ids`` of a reconciliation go with ``republish``."""

    finding_ids: list[FindingId] | None = Field(None, min_length=1, max_length=10_000)


class BulkRequest(OperatorRequest):
    """What to do to every message that matches; ``decision`` belongs to ``force_end`` alone.

    ``republish`` takes ``finding_ids`` and nothing else, and with ``accept_order`` also messages
    that a newer one of their key has overtaken.
    """

    action: Literal["recheck", "force_end", "release_held", "drop_held", "republish"]
    decision: Literal["COMMIT", "ROLLBACK"] | None = None
    filter: Annotated[BulkConditions, Field(strict=False)]
    accept_order: bool = False
    dry_run: bool = False
    max_items: int = Field(1000, ge=1, le=100_000)

    @model_validator(mode="after")
    def _decides_where_it_must(self) -> Self:
        if (self.action == "force_end") != (self.decision is not None):
            raise ValueError("decision goes with force_end, and only with it")
        republish, given = self.action == "republish", self.filter.model_fields_set
        if republish != ("finding_ids" in given) or (republish and given != {"finding_ids"}):
            raise ValueError("finding_ids goes with republish, and only they do")
        if self.accept_order and not republish:
            raise ValueError("accept_order goes with republish")
        return self


class RefusedRepair(BaseModel):
    """A finding whose message is not published again, and why."""

    finding_id: str
    code: Literal["not-open", "not-lost", "not-stored", "repair-pending", "order-risk"]


class DryRun(BaseModel):
    """What a bulk action would touch: how many (``more`` beyond max_items) and the first ids.

    ``refused`` tells, of ``republish`` alone, which findings stay as they are.
    """

    matched: int
    more: bool
    sample: list[str]
    refused: list[RefusedRepair] | None = None


class BulkResource(BaseModel):
    """How far a bulk action has come; of its failures the first are shown."""

    id: str
    status: Literal["running", "finished"]
    matched: int
    done: int
    failed: int
    failures: list[dict[str, Any]]
