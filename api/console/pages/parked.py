"""Parked messages in clusters: one cause, many messages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Query, Refused
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock

PAGE: Final = 500
LOOKED_AT_MOST: Final = 2000
SHOWN: Final = 50
NEVER_CHECKED: Final = "not checked"


@dataclass(slots=True)
class Cluster:
    """Parked messages of one group with one class of error; all have the group's endpoint."""

    group: str
    error: str
    outcome: str | None
    endpoint: str | None = None
    count: int = 0
    oldest: str = ""
    reasons: set[str] = field(default_factory=set)


async def show(visit: Visit) -> Response:
    """Show the clusters of the newest parked messages, and these messages."""
    found, cursor = await _parked(visit)
    clusters = _clusters(found)
    for cluster in clusters:
        cluster.endpoint = await _endpoint(visit, cluster.group)
    return visit.page(
        "parked.html",
        command="outbox message list --state PARKED",
        clusters=clusters,
        found=found[:SHOWN],
        looked_at=len(found),
        complete=cursor is None,
        now=SystemClock().now(),
        not_bulk=visit.why_not(Scope.OPS_FORCE),
    )


async def _parked(visit: Visit) -> tuple[list[dict[str, Any]], str | None]:
    """Return the newest parked messages, and a cursor if there are more."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None and len(found) < LOOKED_AT_MOST:
        query: Query = {"state": "PARKED", "limit": PAGE}
        query = {**query, "cursor": cursor} if cursor else query
        page = await visit.api.get("/v1/half-messages", query)
        found.extend(page["data"])
        cursor = page["next_cursor"]
    return found, cursor


def _clusters(found: list[dict[str, Any]]) -> list[Cluster]:
    """Return one cluster for each group and class of error, the largest first."""
    by_cause: dict[tuple[str, str], Cluster] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for message in found:
        last = message["last_check"]
        error, outcome = _error(last), last["outcome"] if last else None
        cause = (message["producer_group"], error)
        cluster = by_cause.setdefault(cause, Cluster(cause[0], error, outcome))
        counts[cause] += 1
        cluster.oldest = message["prepared_at"]  # the newest come first
        cluster.reasons.add(message["parked_reason"])
    for cause, cluster in by_cause.items():
        cluster.count = counts[cause]
    return sorted(by_cause.values(), key=lambda each: (-each.count, each.group, each.error))


def _error(last: dict[str, Any] | None) -> str:
    """Return the class of the last check's error: its outcome, with the HTTP status if any."""
    if last is None:
        return NEVER_CHECKED
    return " ".join(str(each) for each in (last["outcome"], last["http_status"]) if each)


async def _endpoint(visit: Visit, group: str) -> str | None:
    """Return the check endpoint of a group; None if the key may not read groups."""
    if not visit.can(Scope.GROUPS_READ):
        return None
    try:
        found = await visit.api.quiet().get(f"/v1/producer-groups/{group}")
    except Refused:
        return None
    return str(found["check_url"])
