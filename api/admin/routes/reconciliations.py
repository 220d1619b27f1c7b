"""Finished reconciliations: their verdicts, findings and reports; the API does not run them.

A run covers all producer groups, so a key that is bound to some of them sees no run.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from api.admin.dependencies import (
    OperatorCaller,
    ReportReader,
    ServicesDependency,
    StrictRoute,
    log_action,
)
from api.admin.models.bulk_actions import FindingId
from api.admin.models.page import Page, PageQuery, page_of
from api.admin.models.reconciliations import (
    AcceptRequest,
    FindingQuery,
    FindingResource,
    RunDocument,
)
from api.admin.services import Services
from api.http.problems import Problem, invalid
from outbox.access import Caller
from outbox.errors import TimePast
from outbox.reconciliation.run import FinishedRun, ReportFormat

PATH: Final = "/v1/reconciliations"
SCHEMA_VERSION: Final = 1
MEDIA_TYPES: Final = {
    ReportFormat.HTML: "text/html; charset=utf-8",
    ReportFormat.JSON: "application/json",
    ReportFormat.CSV: "text/csv; charset=utf-8",
}
INERT: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "x-content-type-options": "nosniff",
}
"""A report contains text from outside, so the browser must not run or load anything of it."""
router = APIRouter(prefix=PATH, tags=["reconciliations"], route_class=StrictRoute)


@router.get("", response_model=Page[FinishedRun])
async def list_reconciliations(
    query: Annotated[PageQuery, Query()], caller: ReportReader, services: ServicesDependency
) -> Any:
    """List runs, newest first."""
    visible = caller.groups is None
    if visible and query.after and await services.runs.get(query.after) is None:
        raise Problem(slug="cursor-invalid")
    found = await services.runs.page(query.limit + 1, query.after) if visible else []
    return page_of(found, query.limit, lambda run: run.run_id)


@router.get("/{run_id}", response_model=RunDocument)
async def get_reconciliation(
    run_id: str, caller: ReportReader, services: ServicesDependency
) -> Response:
    """Return a run with its findings, in the form that the run printed."""
    run = await _run(run_id, caller, services)
    kept = await services.runs.report(run_id, ReportFormat.JSON)
    body = kept if kept is not None else _without_report(run).model_dump_json()
    return Response(body, media_type=MEDIA_TYPES[ReportFormat.JSON])


@router.get(
    "/{run_id}/discrepancies",
    response_model=Page[FindingResource],
    operation_id="listDiscrepancies",
)
async def list_findings(
    run_id: str,
    query: Annotated[FindingQuery, Query()],
    caller: ReportReader,
    services: ServicesDependency,
) -> Any:
    """List the findings of a run above info, with their current status and their history."""
    await _run(run_id, caller, services)
    wanted = query.model_dump(exclude={"limit", "cursor"})
    found = await services.runs.findings(run_id, query.limit + 1, query.after, **wanted)
    return page_of(found, query.limit, lambda finding: finding.finding_id)


@router.post("/{run_id}/discrepancies/{finding_id}/accept", status_code=204)
async def accept_finding(
    run_id: str,
    finding_id: FindingId,
    body: AcceptRequest,
    caller: OperatorCaller,
    services: ServicesDependency,
) -> Response:
    """Accept an open finding until a time: it counts in no total, verdict or alert."""
    await _run(run_id, caller, services)
    action = body.action_of(caller)
    try:
        accepted = await services.operations.accept(finding_id, body.until, action)
    except TimePast as error:
        raise invalid("/until", str(error)) from None
    if not accepted:
        raise Problem(
            slug="not-found", detail="no open finding has this id, or it is never accepted"
        )
    log_action("finding.accept", action, finding_id=finding_id)
    return Response(status_code=204)


@router.get(
    "/{run_id}/report.{form}",
    response_class=Response,
    responses={
        200: {
            "description": "The report as the run wrote it",
            "content": {
                each.split(";")[0]: {"schema": {"type": "object" if "json" in each else "string"}}
                for each in MEDIA_TYPES.values()
            },
        }
    },
)
async def get_reconciliation_report(
    run_id: str, form: ReportFormat, caller: ReportReader, services: ServicesDependency
) -> Response:
    """Return the report of a run, one of html, json and csv; the last 30 runs keep theirs."""
    await _run(run_id, caller, services)
    body = await services.runs.report(run_id, form)
    if body is None:
        raise Problem(slug="not-found", detail="the report of this run is no longer kept")
    return Response(body, media_type=MEDIA_TYPES[form], headers=INERT)


async def _run(run_id: str, caller: Caller, services: Services) -> FinishedRun:
    """Return a run. Raises Problem if it does not exist, or if the caller may not see it."""
    visible = caller.groups is None and "\x00" not in run_id
    run = await services.runs.get(run_id) if visible else None
    if run is None:
        raise Problem(slug="run-not-found")
    return run


def _without_report(run: FinishedRun) -> RunDocument:
    return RunDocument(
        schema_version=SCHEMA_VERSION,
        findings=[],
        findings_omitted=run.open_findings,
        run_id=run.run_id,
        verdict=run.verdict,
        sentence=run.sentence,
        totals=dict(run.totals),
    )
