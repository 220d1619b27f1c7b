"""Producer groups: how their checks go, and the actions on them."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from api.console.visit import Visit
from outbox.access import Scope
from outbox.clock import SystemClock

GROUPS: Final = "/v1/producer-groups"
DUE_COUNTED: Final = 1000
"""The route counts at most this many due checks of a delay."""


async def show_all(visit: Visit) -> Response:
    """List the groups."""
    page, following = await visit.list(GROUPS, "/groups", limit=100)
    return visit.page("producer_groups.html", page=page, following=following)


async def show(visit: Visit) -> Response:
    """Show a group."""
    return await _show(visit)


async def test(visit: Visit) -> Response:
    """Send the endpoint a signed and a forged check, and show what it answered."""
    result = await visit.api.post(f"{GROUPS}/{_name(visit)}/test")
    return await _show(visit, result)


async def simulate(visit: Visit) -> Response:
    """Send the endpoint every conformance case, and show which failed, and why."""
    fields = ("transaction_id", "expect")
    asked = {name: visit.form[name] for name in fields if name in visit.form}
    result = await visit.api.post(f"{GROUPS}/{_name(visit)}/simulate", asked)
    return await _show(visit, simulated=result)


async def pause(visit: Visit) -> Response:
    """Pause the checks."""
    return await _set(visit, "pause", "paused")


async def resume(visit: Visit) -> Response:
    """Resume the checks."""
    return await _set(visit, "resume", "resumed")


async def _show(
    visit: Visit,
    tested: dict[str, Any] | None = None,
    simulated: dict[str, Any] | None = None,
) -> Response:
    name = _name(visit)
    group = await visit.api.get(f"{GROUPS}/{name}")
    health = await visit.api.get(f"{GROUPS}/{name}/health")
    checks = await visit.read(visit.can(Scope.MESSAGES_READ), f"{GROUPS}/{name}/checks")
    return visit.page(
        "producer_group.html",
        group=group,
        health=health,
        due_counted=DUE_COUNTED,
        tested=tested,
        simulated=simulated,
        checks=checks,
        now=SystemClock().now(),
        not_writing=visit.why_not(Scope.GROUPS_WRITE),
        not_reading=visit.why_not(Scope.MESSAGES_READ),
    )


async def _set(visit: Visit, action: str, done: str) -> Response:
    body = {"reason": visit.form.get("reason", ""), "operator": visit.operator}
    await visit.api.post(f"{GROUPS}/{_name(visit)}/{action}", body)
    return visit.see(f"/groups/{_name(visit)}", done=done)


def _name(visit: Visit) -> str:
    return str(visit.request.path_params["name"])
