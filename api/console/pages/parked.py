"""Parked messages in clusters: one cause, many messages."""

from __future__ import annotations

from collections import defaultdict
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


def _clusters(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of each group whose last check went the same way, the most first."""
    by_cause: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for message in found:
        last = message["last_check"] or {"outcome": NEVER_CHECKED, "http_status": None}
        cause = message["producer_group"], last["outcome"], last["http_status"]
        by_cause[cause].append(message)
    clusters = [
        {
            "filters": {
                "state": State.PARKED.value,
                "producer_group": group,
                "last_outcome": outcome,
                **({"last_http_status": str(status)} if status else {}),
            },
            "count": len(alike),
            "oldest": alike[-1]["prepared_at"],  # the newest come first
            "reasons": {each["parked_reason"] for each in alike},
        }
        for (group, outcome, status), alike in by_cause.items()
    ]
    return sorted(clusters, key=lambda each: (-each["count"], each["filters"]["producer_group"]))
