"""Publishing: what is committed and not yet in Kafka, and what holds it up."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Query, Refused
from api.console.pages.overview import metric_values
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock

SHOWN: Final = 100
HELD: Final = "/v1/held-records"
ACTIONS: Final = ("release", "drop")


async def show(visit: Visit) -> Response:
    """Show the backlog by topic, halted shards, partitions, and what Kafka refuses."""
    values = await metric_values(visit)
    query: Query = {"state": "COMMITTED", "limit": SHOWN}
    waiting = (await visit.api.get("/v1/half-messages", query))["data"]
    held = await visit.api.get(HELD, {"limit": SHOWN})
    sees_all = visit.caller.groups is None and visit.can(Scope.REPORTS_READ)
    return visit.page(
        "publishing.html",
        command="outbox held list",
        backlog=[
            (each.labels["topic"], int(each.value))
            for each in values.of("publish_backlog_messages")
            if each.value
        ],
        held=held,
        waiting=[each for each in waiting if not each["publish_error"]],
        causes=_causes(held["data"]),
        shards=(await visit.api.get("/v1/shards"))["data"] if sees_all else [],
        partitions=await _partitions(visit) if sees_all else [],
        sees_all=sees_all,
        not_forced=visit.why_not(Scope.OPS_FORCE),
        now=SystemClock().now(),
        bound=visit.caller.groups is not None,
    )


async def settle(visit: Visit) -> Response:
    """Publish a held record again, or give it up."""
    message_id, action = visit.request.path_params["message_id"], visit.form.get("action", "")
    if action not in ACTIONS:
        raise Refused(422, {"title": "The action is not valid", "detail": "choose one of the two"})
    body = {"operator": visit.form.get("operator", ""), "reason": visit.form.get("reason", "")}
    await visit.api.post(f"{HELD}/{message_id}/{action}", body)
    return visit.see("/publishing", done="released" if action == "release" else "dropped")


async def _partitions(visit: Visit) -> list[dict[str, Any]] | None:
    """Return the partitions; None while Kafka does not answer."""
    try:
        found: list[dict[str, Any]] = (await visit.api.get("/v1/partitions"))["data"]
    except Refused as refused:
        if refused.status != 503:
            raise
        return None
    return found


def _causes(held: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Return topic, error and number of the records that are held, the most first."""
    counts: dict[tuple[str, str], int] = {}
    for each in held:
        cause = (each["topic"], each["publish_error"])
        counts[cause] = counts.get(cause, 0) + 1
    return sorted(((*cause, n) for cause, n in counts.items()), key=lambda each: -each[2])
