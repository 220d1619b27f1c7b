"""Publishing: what is committed and not yet in Kafka, by topic."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Query
from api.console.pages.overview import metric_values
from api.console.visit import Visit
from outbox.clock import SystemClock

SHOWN: Final = 100


async def show(visit: Visit) -> Response:
    """Show the backlog by topic, and the messages that Kafka refuses or that wait."""
    values = await metric_values(visit)
    query: Query = {"state": "COMMITTED", "limit": SHOWN}
    waiting = (await visit.api.get("/v1/half-messages", query))["data"]
    return visit.page(
        "publishing.html",
        command="outbox held list",
        backlog=[
            (each.labels["topic"], int(each.value))
            for each in values.of("publish_backlog_messages")
            if each.value
        ],
        refused=[each for each in waiting if each["publish_error"]],
        waiting=[each for each in waiting if not each["publish_error"]],
        causes=_causes(waiting),
        now=SystemClock().now(),
        bound=visit.caller.groups is not None,
    )


def _causes(waiting: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Return topic, error and number of the messages that Kafka refuses, the most first."""
    counts: dict[tuple[str, str], int] = {}
    for each in waiting:
        if each["publish_error"]:
            cause = (each["topic"], each["publish_error"])
            counts[cause] = counts.get(cause, 0) + 1
    return sorted(((*cause, n) for cause, n in counts.items()), key=lambda each: -each[2])
