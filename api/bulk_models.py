"""The wire models of bulk actions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from api.models import MessageConditions, OperatorRequest


class BulkRequest(OperatorRequest):
    """What to do to every message that matches; ``decision`` belongs to ``force_end`` alone."""

    action: Literal["recheck", "force_end", "release_held", "drop_held"]
    decision: Literal["COMMIT", "ROLLBACK"] | None = None
    filter: Annotated[MessageConditions, Field(strict=False)]
    dry_run: bool = False
    max_items: int = Field(1000, ge=1, le=100_000)

    @model_validator(mode="after")
    def _decides_where_it_must(self) -> Self:
        if (self.action == "force_end") != (self.decision is not None):
            raise ValueError("decision goes with force_end, and only with it")
        return self


class DryRun(BaseModel):
    """What a bulk action would touch: how many (``more`` beyond max_items) and the first ids."""

    matched: int
    more: bool
    sample: list[str]


class BulkResource(BaseModel):
    """How far a bulk action has come; of its failures the first are shown."""

    id: str
    status: Literal["running", "finished"]
    matched: int
    done: int
    failed: int
    failures: list[dict[str, Any]]
