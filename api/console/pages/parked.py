"""Parked messages in clusters: one cause, many messages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import Response

from api.console.csv_file import EXPORTED
from api.console.in_process_api import Query
from api.console.pages.bulk_action import offered_actions
from api.console.visit import Visit
from outbox.access import Scope
from outbox.checks.check_round import Outcome
from outbox.clock import SystemClock
from outbox.messages.message import State
from outbox.operators.message_view import NEVER_CHECKED

PAGE: Final = 500
LOOKED_AT_MOST: Final = 2000
SHOWN: Final = 50
NOT_CHECKED: Final = "not checked"


@dataclass(slots=True)
class Cluster:
    """Parked messages of one group with one class of error."""

    group: str
    error: str
    search: str
    """The search that finds these messages and no others."""
    count: int = 0
    oldest: str = ""
    reasons: set[str] = field(default_factory=set)


async def show(visit: Visit) -> Response:
    """Show the clusters of the newest parked messages, and these messages."""
    found, cursor = await _parked(visit)
    return visit.page(
        "parked.html",
        clusters=_clusters(found),
        found=found[:SHOWN],
        looked_at=len(found),
        complete=cursor is None,
        now=SystemClock().now(),
        actions=offered_actions(State.PARKED),
        not_bulk=visit.why_not(Scope.OPS_FORCE),
        exported=EXPORTED,
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
        cause = (message["producer_group"], _error(last))
        cluster = by_cause.setdefault(cause, Cluster(*cause, _search(cause[0], last)))
        counts[cause] += 1
        cluster.oldest = message["prepared_at"]  # the newest come first
        cluster.reasons.add(message["parked_reason"])
    for cause, cluster in by_cause.items():
        cluster.count = counts[cause]
    return sorted(by_cause.values(), key=lambda each: (-each.count, each.group, each.error))


def _error(last: dict[str, Any] | None) -> str:
    """Return the class of the last check's error: its outcome, of an HTTP error with its status."""
    if last is None:
        return NOT_CHECKED
    status = f" {last['http_status']}" if last["outcome"] == Outcome.HTTP_ERROR else ""
    return f"{last['outcome']}{status}"


def _search(group: str, last: dict[str, Any] | None) -> str:
    """Return the search for the parked messages of a group with this class of error."""
    found = f"state:parked group:{group}"
    if last is None:
        return f"{found} outcome:{NEVER_CHECKED}"
    status = f" status:{last['http_status']}" if last["outcome"] == Outcome.HTTP_ERROR else ""
    return f"{found} outcome:{last['outcome']}{status}"
