"""Producer groups: how their checks go, and the actions on them."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from api.console.metric_values import metric_values
from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock

GROUPS: Final = "/v1/producer-groups"
DUE_COUNTED: Final = 1000
"""The route counts at most this many due checks of a delay."""


async def show_all(visit: Visit) -> Response:
    """List the groups."""
    page = await visit.list(GROUPS, "/groups", limit=100)
    failing = (await metric_values(visit)).of("check_failing_seconds")
    return visit.page(
        "producer_groups.html",
        page=page,
        failing={each.labels["producer_group"]: each.value for each in failing},
    )


async def show(visit: Visit, tested: Any = None, simulated: Any = None) -> Response:
    """Show a group, and what its endpoint has just answered."""
    route = _route(visit)
    return visit.page(
        "producer_group.html",
        title=visit.at["name"],
        group=await visit.api.get(route),
        health=await visit.api.get(f"{route}/health"),
        due_counted=DUE_COUNTED,
        tested=tested,
        simulated=simulated,
        checks=await visit.read(visit.can(Scope.MESSAGES_READ), f"{route}/checks"),
        now=SystemClock().now(),
        not_writing=visit.why_not(Scope.GROUPS_WRITE),
        not_reading=visit.why_not(Scope.MESSAGES_READ),
    )


async def test(visit: Visit) -> Response:
    """Send the endpoint a signed and a forged check, and show what it answered."""
    return await show(visit, tested=await visit.api.post(f"{_route(visit)}/test"))


async def simulate(visit: Visit) -> Response:
    """Send the endpoint every conformance case, and show which failed, and why."""
    fields = ("transaction_id", "expect")
    asked = {name: visit.form[name] for name in fields if name in visit.form}
    return await show(visit, simulated=await visit.api.post(f"{_route(visit)}/simulate", asked))


def _route(visit: Visit) -> str:
    return f"{GROUPS}/{visit.at['name']}"
