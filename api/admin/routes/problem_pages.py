"""The page of a problem's ``type``: its meaning as text or JSON."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from api.admin.dependencies import StrictRoute
from api.http.problems import KINDS, Problem

router = APIRouter(prefix="/problems", tags=["problems"], route_class=StrictRoute)


@router.get("/{slug}", response_class=PlainTextResponse)
async def explain(slug: str, request: Request) -> Response:
    """Return the meaning of a problem and its remedy."""
    kind = KINDS.get(slug)
    if kind is None:
        raise Problem(slug="not-found")
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse(
            {"code": slug, "status": kind.status, "title": kind.title, "meaning": kind.meaning}
        )
    return PlainTextResponse(f"{kind.status} {slug}\n\n{kind.title}.\n{kind.meaning}\n")
