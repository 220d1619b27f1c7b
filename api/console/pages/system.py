"""The system: what the doctor finds, with the way on, and the configuration."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from api.console.visit import Visit
from outbox.access import Scope

WORST_FIRST: Final = ("failed", "warning", "ok")
CAUSES: Final = ("postgres", "postgres writes", "kafka")
"""Checks whose failure makes others fail."""


async def show(visit: Visit) -> Response:
    """Show the doctor's report and the settings."""
    sees_all = visit.caller.groups is None
    reads = sees_all and visit.can(Scope.REPORTS_READ)
    report = (await visit.api.get("/v1/doctor"))["data"] if reads else []
    is_admin = sees_all and visit.can(Scope.ADMIN)
    return visit.page(
        "system.html",
        running=await visit.api.get("/version"),
        report=sorted(report, key=_rank),
        settings=(await visit.api.get("/v1/config"))["data"] if is_admin else [],
        reads=reads,
        is_admin=is_admin,
    )


def _rank(check: dict[str, Any]) -> tuple[int, bool]:
    """Return the place of a check in the report: the worst first, causes before effects."""
    return WORST_FIRST.index(check["verdict"]), check["check"] not in CAUSES
