"""Reconciliations: the runs, their findings, their reports."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from api.console.visit import Visit
from outbox.reconciliation.finding import first_of_each_class

RUNS: Final = "/v1/reconciliations"
SHOWN: Final = 50
FILTERS: Final = ("kind", "class", "status", "topic", "hour")


async def show_all(visit: Visit) -> Response:
    """List the runs, newest first."""
    page, following = await visit.list(RUNS, "/reconciliations", limit=SHOWN)
    return visit.page("reconciliations.html", page=page, following=following)


async def show(visit: Visit) -> Response:
    """Show a run and its findings."""
    run_id = visit.request.path_params["run_id"]
    run = await visit.api.get(f"{RUNS}/{run_id}")
    given = {name: visit.query[name] for name in FILTERS if visit.query.get(name)}
    route, path = f"{RUNS}/{run_id}/discrepancies", f"/reconciliations/{run_id}"
    page, following = await visit.list(route, path, limit=SHOWN, **given)
    return visit.page(
        "reconciliation.html",
        run=run,
        totals=await visit.api.get(f"{RUNS}/{run_id}/totals"),
        page=page,
        steps=first_of_each_class(run["findings"], page["data"]),
        given=given,
        following=following,
    )


async def download(visit: Visit) -> Response:
    """Return a report as a file, as the run wrote it."""
    run_id, form = visit.request.path_params["run_id"], visit.request.path_params["form"]
    answer = await visit.api.fetch(f"{RUNS}/{run_id}/report.{form}")
    headers = {
        name: answer.headers[name]
        for name in ("content-type", "content-security-policy", "x-content-type-options")
    }
    headers["content-disposition"] = f'attachment; filename="reconciliation.{form}"'
    return Response(answer.content, headers=headers | {"cache-control": "no-store"})
