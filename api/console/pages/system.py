"""The system: whether each part works, and its version."""

from __future__ import annotations

from starlette.responses import Response

from api.console.in_process_api import Refused
from api.console.visit import Visit


async def show(visit: Visit) -> Response:
    """Show what ``/readyz`` says, also while it is not ready."""
    try:
        ready = await visit.api.get("/readyz")
    except Refused as refused:
        ready = refused.problem
    return visit.page(
        "system.html",
        command="outbox doctor",
        checks=ready.get("checks", {}),
        running=await visit.api.get("/version"),
    )
