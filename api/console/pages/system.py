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
    report = await visit.read(visit.sees_all, "/v1/doctor")
    is_admin = visit.can(Scope.ADMIN) and not visit.is_bound
    return visit.page(
        "system.html",
        report=report and sorted(report["data"], key=rank),
        settings=await visit.read(is_admin, "/v1/config"),
    )


def rank(check: dict[str, Any]) -> tuple[int, bool]:
    """Return the place of a check in the report: the worst first, causes before effects."""
    return WORST_FIRST.index(check["verdict"]), check["check"] not in CAUSES
