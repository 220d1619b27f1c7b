"""Publishing: what is committed and not yet in Kafka, and what holds it up."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Refused
from api.console.metric_values import metric_values
from api.console.visit import Visit
from api.http.problems import invalid
from outbox.access import Scope
from outbox.operators.held_records import COUNTED

SHOWN: Final = 100
HELD: Final = "/v1/held-records"
ACTIONS: Final = ("release", "drop")
"""How the routes of a held record end."""


async def show(visit: Visit) -> Response:
    """Show the backlog by topic, halted shards, partitions, and what Kafka refuses."""
    # All at once: each waits for another store, or for another statement.
    values, shards, partitions, held = await asyncio.gather(
        metric_values(visit),
        visit.read(visit.sees_all, "/v1/shards"),
        _partitions(visit),
        visit.list(HELD, "/publishing", limit=SHOWN),
    )
    return visit.page(
        "publishing.html",
        topics=[each for each in values.of("publish_backlog_messages") if each.value],
        held=held,
        most_counted=COUNTED,
        shards=shards,
        partitions=partitions,
        not_forced=visit.why_not(Scope.OPS_FORCE),
    )


async def settle(visit: Visit) -> Response:
    """Publish a held record again, or give it up."""
    body = visit.filled_in
    action = body.pop("action", "")
    if action not in ACTIONS:
        raise invalid("/action", "must be chosen")
    await visit.api.post(f"{HELD}/{visit.at['message_id']}/{action}", body)
    return visit.see("/publishing", done="released" if action == "release" else "dropped")


async def _partitions(visit: Visit) -> Any:
    """Return the partitions; None if the visitor may not see them, or while Kafka is away."""
    try:
        found = await visit.read(visit.sees_all, "/v1/partitions")
    except Refused as refused:
        if refused.status != 503:
            raise
        return None
    return found and found["data"]
