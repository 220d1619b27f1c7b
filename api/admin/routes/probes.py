"""What machines ask about the service itself."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from api.admin.dependencies import NoQuery, ServicesOf
from api.http.problems import Problem

OPENMETRICS = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter(tags=["probes"], dependencies=[NoQuery])


@router.get("/livez")
async def livez() -> dict[str, str]:
    """Tell that the process serves requests."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(services: ServicesOf) -> dict[str, Any]:
    """Tell whether prepares, ends, checks and publishing can all go on."""
    checks = dict(await services.readiness.checks(services.heartbeat_seconds))
    if not services.topics.reachable:
        await services.topics.refresh()
    checks["kafka"] = "ok" if services.topics.reachable else "unavailable"
    if any(state != "ok" for state in checks.values()):
        raise Problem(slug="not-ready", facts={"checks": checks})
    return {"status": "ok", "checks": checks}


@router.get("/version")
async def version(services: ServicesOf) -> dict[str, str]:
    """Tell which version runs."""
    return {"version": services.version}


@router.get("/metrics", response_class=Response)
async def metrics(services: ServicesOf) -> Response:
    """Return the metrics in Prometheus' text format."""
    if not services.metrics_here:
        raise Problem(slug="not-found")
    return Response(await services.render_metrics(), media_type=OPENMETRICS)
