"""The probes of the service: liveness, readiness, version and metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.admin.dependencies import ServicesDependency, StrictRoute
from api.http.problems import Problem
from outbox.access import NOBODY

OPENMETRICS = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter(tags=["probes"], route_class=StrictRoute)


@router.get("/livez")
async def get_liveness() -> dict[str, str]:
    """Return 200 while the process serves requests."""
    return {"status": "ok"}


@router.get("/readyz")
async def get_readiness(services: ServicesDependency) -> dict[str, Any]:
    """Return 200 if prepares, ends, checks and publishing can all run, else 503."""
    checks = dict(await services.readiness.get())
    if checks["postgres"] == "ok":
        checks["postgres"] = services.stores.refused_flush() or "ok"
    if not services.topic_cache.reachable:
        await services.topic_cache.refresh()
    checks["kafka"] = "ok" if services.topic_cache.reachable else "unavailable"
    if any(state != "ok" for state in checks.values()):
        raise Problem(slug="not-ready", facts={"checks": checks})
    return {"status": "ok", "checks": checks}


@router.get("/version")
async def get_version(services: ServicesDependency) -> dict[str, str]:
    """Return the version of the service."""
    return {"version": services.version}


@router.get("/metrics", response_class=PlainTextResponse)
async def get_metrics(request: Request, services: ServicesDependency) -> Response:
    """Return the metrics in Prometheus' text format.

    If they are served on another address, only the console reads them here, for its visitor.
    """
    if services.settings.metrics_bind and request.state.caller is NOBODY:
        raise Problem(slug="not-found")
    return Response(await services.render_metrics(), media_type=OPENMETRICS)
