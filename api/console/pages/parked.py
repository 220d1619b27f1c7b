"""Parked messages in clusters: one cause, many messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import Response

from api.console.csv_file import EXPORTED
from api.console.in_process_api import Query
from api.console.pages.bulk_action import offered_actions
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.messages.message import State
from outbox.operators.message_view import NEVER_CHECKED

LOOKED_AT_MOST: Final = 500
SHOWN: Final = 50
Cause = tuple[str, str, int | None]
"""A group, and outcome and HTTP status of a last check."""


@dataclass(slots=True)
class Cluster:
    """Parked messages of one group whose last check went the same way."""

    group: str
    outcome: str
    status: int | None
    count: int = 0
    oldest: str = ""
    reasons: set[str] = field(default_factory=set)

    @property
    def filters(self) -> dict[str, str]:
        """The filters that find these messages and no others."""
        found = {"state": "PARKED", "producer_group": self.group, "last_outcome": self.outcome}
        return found | ({"last_http_status": str(self.status)} if self.status else {})


async def show(visit: Visit) -> Response:
    """Show the clusters of the newest parked messages, and these messages."""
    query: Query = {"state": State.PARKED, "limit": LOOKED_AT_MOST}
    page = await visit.api.get("/v1/half-messages", query)
    found = page["data"]
    return visit.page(
        "parked.html",
        clusters=_clusters(found),
        found=found[:SHOWN],
        looked_at=len(found),
        complete=not page["has_more"],
        now=SystemClock().now(),
        actions=offered_actions(State.PARKED),
        not_bulk=visit.why_not(Scope.OPS_FORCE),
        exported=EXPORTED,
    )


def _clusters(found: list[dict[str, Any]]) -> list[Cluster]:
    """Return one cluster for each cause, the largest first."""
    by_cause: dict[Cause, Cluster] = {}
    for message in found:
        cause = _cause(message)
        cluster = by_cause.setdefault(cause, Cluster(*cause))
        cluster.count += 1
        cluster.oldest = message["prepared_at"]  # the newest come first
        cluster.reasons.add(message["parked_reason"])
    return sorted(by_cause.values(), key=lambda each: (-each.count, each.group))


def _cause(message: dict[str, Any]) -> Cause:
    """Return the group, and the outcome and status of the last check."""
    last = message["last_check"] or {"outcome": NEVER_CHECKED, "http_status": None}
    return message["producer_group"], last["outcome"], last["http_status"]
