"""Finished reconciliations: their verdicts, findings and reports; they are run elsewhere.

A run speaks of all producer groups, so a key that is bound to some of them sees none.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from api.admin.dependencies import NoQuery, ServicesOf, StrictRoute, needs
from api.admin.models.reconciliations import (
    DiscrepancyPage,
    DiscrepancyQuery,
    DiscrepancyResource,
    FindingEventResource,
    RunDocument,
    RunPage,
    RunResource,
)
from api.admin.services import Services
from api.http.page_token import seal, unseal
from api.http.problems import Problem
from api.models import PageQuery
from outbox.access import Caller, Scope
from outbox.reconciliation.finished_runs import (
    FindingFilter,
    KnownFinding,
    ReportFormat,
    RunPlace,
    RunSummary,
)

PATH: Final = "/v1/reconciliations"
SCHEMA_VERSION: Final = 1
RUN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
MEDIA_TYPES: Final = {
    ReportFormat.HTML: "text/html; charset=utf-8",
    ReportFormat.JSON: "application/json",
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.CSV: "text/csv; charset=utf-8",
}
INERT: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "x-content-type-options": "nosniff",
}
"""A report shows strangers' text: it may run nothing and load nothing, whatever is in it."""
router = APIRouter(prefix=PATH, tags=["reconciliations"], route_class=StrictRoute)

Reader = Annotated[Caller, needs(Scope.REPORTS_READ)]


@router.get("", response_model=RunPage)
async def list_reconciliations(
    query: Annotated[PageQuery, Query()], caller: Reader, services: ServicesOf
) -> Any:
    """List runs, newest first."""
    before = _place(query.cursor)
    found = [] if caller.groups is not None else await services.runs.page(query.limit + 1, before)
    shown, more = found[: query.limit], len(found) > query.limit
    return {
        "data": [_resource(run) for run in shown],
        "next_cursor": _cursor(shown[-1].place) if more else None,
        "has_more": more,
    }


@router.get("/{run_id}", response_model=RunDocument, dependencies=[NoQuery])
async def get_reconciliation(run_id: str, caller: Reader, services: ServicesOf) -> Response:
    """Return a run with its findings, as the run itself printed it."""
    run = await _run(run_id, caller, services)
    kept = await services.runs.report(run_id, ReportFormat.JSON)
    body = kept if kept is not None else _without_report(run).model_dump_json()
    return Response(body, media_type=MEDIA_TYPES[ReportFormat.JSON])


@router.get("/{run_id}/discrepancies", response_model=DiscrepancyPage)
async def list_discrepancies(
    run_id: str,
    query: Annotated[DiscrepancyQuery, Query()],
    caller: Reader,
    services: ServicesOf,
) -> Any:
    """List what a run found, above info, with the status of now and what led there."""
    await _run(run_id, caller, services)
    wanted = FindingFilter(kind=query.kind, finding_class=query.finding_class, status=query.status)
    after = unseal(query.cursor) if query.cursor is not None else ""
    if "\x00" in after:
        raise Problem(slug="cursor-invalid")
    found = await services.runs.findings(run_id, wanted, query.limit + 1, after)
    shown, more = found[: query.limit], len(found) > query.limit
    return {
        "data": [_discrepancy(each) for each in shown],
        "next_cursor": seal(shown[-1].finding_id) if more else None,
        "has_more": more,
    }


@router.get(
    "/{run_id}/report.{form}",
    dependencies=[NoQuery],
    response_class=Response,
    responses={
        200: {
            "description": "The report as it was written",
            "content": {each.split(";")[0]: {} for each in MEDIA_TYPES.values()},
        }
    },
)
async def get_report(
    run_id: str, form: ReportFormat, caller: Reader, services: ServicesOf
) -> Response:
    """Return the report of a run, one of html, json, md and csv; the last 30 runs keep theirs."""
    await _run(run_id, caller, services)
    body = await services.runs.report(run_id, form)
    if body is None:
        raise Problem(slug="not-found", detail="the report of this run is no longer kept")
    return Response(body, media_type=MEDIA_TYPES[form], headers=INERT)


async def _run(run_id: str, caller: Caller, services: Services) -> RunSummary:
    """Return a run. Raises Problem where there is none, or none that the caller may see."""
    visible = caller.groups is None and RUN_ID.fullmatch(run_id) is not None
    run = await services.runs.get(run_id) if visible else None
    if run is None:
        raise Problem(slug="run-not-found")
    return run


def _resource(run: RunSummary) -> RunResource:
    return RunResource(
        run_id=run.run_id,
        previous_run_id=run.previous_run_id,
        mode=run.mode,
        started_at=run.started_at,
        cut_at=run.cut_at,
        finished_at=run.finished_at,
        verdict=run.verdict,  # type: ignore[arg-type]
        sentence=run.sentence,
        totals=dict(run.totals),
        reports=list(run.formats),
    )


def _without_report(run: RunSummary) -> RunDocument:
    return RunDocument(
        schema_version=SCHEMA_VERSION,
        findings=[],
        findings_omitted=sum(run.totals.values()),
        **_resource(run).model_dump(include={"run_id", "verdict", "sentence", "totals"}),
    )


def _discrepancy(found: KnownFinding) -> DiscrepancyResource:
    return DiscrepancyResource(
        finding_id=found.finding_id,
        kind=found.kind,
        finding_class=found.finding_class,
        severity=found.severity,
        status=found.status,
        message_id=found.detail.get("message_id"),
        topic=found.topic,
        first_run_id=found.first_run_id,
        last_run_id=found.last_run_id,
        found_at=found.found_at,
        updated_at=found.updated_at,
        accepted_until=found.accepted_until,
        detail=dict(found.detail),
        history=[FindingEventResource(**asdict(each)) for each in found.history],
    )


def _cursor(place: RunPlace) -> str:
    return seal(f"{place.finished_at.isoformat()} {place.run_id}")


def _place(cursor: str | None) -> RunPlace | None:
    if cursor is None:
        return None
    moment, _, run_id = unseal(cursor).partition(" ")
    try:
        finished_at = datetime.fromisoformat(moment)
    except ValueError:
        raise Problem(slug="cursor-invalid") from None
    if finished_at.tzinfo is None or RUN_ID.fullmatch(run_id) is None:
        raise Problem(slug="cursor-invalid")
    return RunPlace(finished_at, run_id)
