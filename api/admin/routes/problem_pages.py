"""The page of a problem's ``type``: its meaning as text."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from api.admin.dependencies import StrictRoute
from api.http.problems import KINDS, Problem

router = APIRouter(prefix="/problems", tags=["problems"], route_class=StrictRoute)


@router.get("/{slug}", response_class=PlainTextResponse)
async def explain_problem(slug: str) -> PlainTextResponse:
    """Return the meaning of a problem and its remedy."""
    kind = KINDS.get(slug)
    if kind is None:
        raise Problem(slug="not-found")
    return PlainTextResponse(f"{kind.status} {slug}\n\n{kind.title}.\n{kind.meaning}\n")
