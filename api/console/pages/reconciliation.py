"""Reconciliations: the runs, their findings, their reports."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from api.console.visit import Visit
from outbox.reconciliation.finding import first_of_each_cause

RUNS: Final = "/v1/reconciliations"
SHOWN: Final = 50
FILTERS: Final = ("kind", "finding_class", "status", "topic")


async def show_all(visit: Visit) -> Response:
    """List the runs, newest first."""
    page = await visit.list(RUNS, "/reconciliations", limit=SHOWN)
    return visit.page("reconciliations.html", page=page)


async def show(visit: Visit) -> Response:
    """Show a run and its findings."""
    path, given = "/reconciliations/{run_id}".format(**visit.at), visit.given(FILTERS)
    run = await visit.api.get(f"/v1{path}")
    page = await visit.list(f"/v1{path}/discrepancies", path, limit=SHOWN, **given)
    return visit.page(
        "reconciliation.html",
        run=run,
        page=page,
        steps=first_of_each_cause(run["findings"], page["data"]),
        given=given,
    )


async def download(visit: Visit) -> Response:
    """Return a report as a file, as the run wrote it."""
    answer = await visit.api.fetch("/v1/reconciliations/{run_id}/report.{form}".format(**visit.at))
    headers = {
        name: answer.headers[name]
        for name in ("content-type", "content-security-policy", "x-content-type-options")
    }
    headers["content-disposition"] = f'attachment; filename="reconciliation.{visit.at["form"]}"'
    return Response(answer.content, headers=headers | {"cache-control": "no-store"})
