"""The wire models of bulk actions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from api.http.wire_types import Moment
from api.models import MessageConditions, OperatorRequest

FindingId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class BulkConditions(MessageConditions):
    """The filter of a bulk action.

    ``finding_ids`` of a reconciliation go with ``republish`` and ``accept_finding``.
    """

    finding_ids: list[FindingId] | None = Field(None, min_length=1, max_length=10_000)


class BulkRequest(OperatorRequest):
    """What to do to every message that matches; ``decision`` belongs to ``force_end`` alone.

    ``republish`` takes ``finding_ids`` and nothing else, and with ``accept_order`` also messages
    that a newer one of their key has overtaken; ``rate`` bounds the messages a second that it hands
    to the relay. ``accept_finding`` takes ``finding_ids`` and ``until``, a moment with a time zone.
    """

    action: Literal[
        "recheck", "force_end", "release_held", "drop_held", "republish", "accept_finding"
    ]
    decision: Literal["COMMIT", "ROLLBACK"] | None = None
    filter: Annotated[BulkConditions, Field(strict=False)]
    accept_order: bool = False
    rate: int | None = Field(None, ge=1, le=10_000)
    until: Moment | None = None
    dry_run: bool = False
    max_items: int = Field(1000, ge=1, le=100_000)

    @model_validator(mode="after")
    def _decides_where_it_must(self) -> Self:
        if (self.action == "force_end") != (self.decision is not None):
            raise ValueError("decision goes with force_end, and only with it")
        republish, given = self.action == "republish", self.filter.model_fields_set
        accept = self.action == "accept_finding"
        by_finding = republish or accept
        if by_finding != ("finding_ids" in given) or (by_finding and given != {"finding_ids"}):
            raise ValueError("finding_ids goes with republish and accept_finding, alone")
        if (self.accept_order or self.rate is not None) and not republish:
            raise ValueError("accept_order and rate go with republish")
        if accept != (self.until is not None):
            raise ValueError("until goes with accept_finding, and only with it")
        return self


class RefusedFinding(BaseModel):
    """A finding that is not accepted, or whose message is not published again, and why."""

    finding_id: str
    code: Literal[
        "not-open",
        "not-lost",
        "not-stored",
        "repair-pending",
        "order-risk",
        "digest-differs",
        "not-acceptable",
    ]


class DryRun(BaseModel):
    """What a bulk action would touch: how many (``more`` beyond max_items) and the first ids.

    ``refused`` tells, of ``republish`` and ``accept_finding``, which findings stay as they are;
    the sample of the latter names findings.
    """

    matched: int
    more: bool
    sample: list[str]
    refused: list[RefusedFinding] | None = None


class BulkResource(BaseModel):
    """How far a bulk action has come; of its failures the first are shown."""

    id: str
    status: Literal["running", "finished"]
    matched: int
    done: int
    failed: int
    failures: list[dict[str, Any]]
