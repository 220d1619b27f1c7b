"""The REST face as one ASGI application: the guard, the hot routes, the framework's routes.

A factory; nothing is global and nothing is opened here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache, partial
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from api.admin.routes import (
    api_keys,
    bulk_actions,
    half_messages,
    probes,
    problem_pages,
    producer_groups,
    reconciliations,
)
from api.admin.services import Services
from api.guard import Guard
from api.http.allowed_methods import AllowedMethods
from api.http.auth import Authenticator
from api.http.docs_page import docs_page
from api.http.json_body import pointer_to
from api.http.problems import Problem, body_of, headers_of, invalid, problem_of
from api.http.rate_limits import RateLimits
from api.http.request_limits import HttpLimits
from api.ingest.hot_routes import HotRoutes
from api.ingest.ingest import Ingest
from api.openapi import openapi_document
from outbox.clock import Clock
from outbox.errors import OutboxError

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

SLUG_OF_STATUS: Final = {
    400: "malformed-json",
    404: "not-found",
    405: "method-not-allowed",
    413: "payload-too-large",
    415: "unsupported-media-type",
}


def create_app(
    *,
    ingest: Ingest,
    services: Services,
    authenticator: Authenticator,
    limits: HttpLimits,
    rates: RateLimits,
    clock: Clock,
    lifespan: Lifespan | None = None,
    docs_enabled: bool = True,
) -> Guard:
    """Put the service together from its parts."""
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.services = services
    _include_routes(app)
    hot = HotRoutes(ingest, rates.prepares)
    document = _document(services.version)
    _answer_problems(app, AllowedMethods(document))
    if docs_enabled:
        _serve_contract(app, document)
    return Guard(
        app,
        hot,
        authenticator=authenticator,
        limits=limits,
        reads=rates.reads,
        metrics=services.metrics,
        clock=clock,
        lifespan=partial(lifespan, app) if lifespan else nullcontext,
    )


def _include_routes(app: FastAPI) -> None:
    parts = (
        *(half_messages, bulk_actions, producer_groups, reconciliations, api_keys),
        *(probes, problem_pages),
    )
    for part in parts:
        app.include_router(part.router)


@cache
def _document(version: str) -> dict[str, Any]:
    """Return the contract of all routes; making it is most of a start, so a process does it once.

    The dictionary is shared: read it only.
    """
    app = FastAPI(openapi_url=None, generate_unique_id_function=_operation_id)
    _include_routes(app)
    return openapi_document(app, version)


def _operation_id(route: APIRoute) -> str:
    """Name an operation in the contract as a client generator would name a method."""
    first, *rest = route.name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _serve_contract(app: FastAPI, document: dict[str, Any]) -> None:
    """Serve the OpenAPI document and its page, made once."""
    page = docs_page(document)

    async def openapi_json(_: Request) -> Response:
        return JSONResponse(document)

    async def docs(_: Request) -> Response:
        return HTMLResponse(page)

    app.add_route("/openapi.json", openapi_json, include_in_schema=False)
    app.add_route("/docs", docs, include_in_schema=False)


def _answer_problems(app: FastAPI, allowed: AllowedMethods) -> None:
    """Turn every error that leaves a route, the framework's own included, into a problem."""

    def of_framework(error: HTTPException, request: Request) -> Problem:
        return _of_framework(error, allowed.of(request.url.path))

    judges: tuple[tuple[type[Exception], Callable[[Any, Request], Problem]], ...] = (
        (Problem, lambda problem, _: problem),
        (OutboxError, lambda error, _: problem_of(error)),
        (RequestValidationError, lambda error, _: _of_validation(error)),
        (HTTPException, of_framework),
        (Exception, lambda _, __: Problem(slug="internal-error")),
    )
    for kind, judge in judges:
        app.add_exception_handler(kind, _handler(judge))


def _handler(judge: Callable[[Any, Request], Problem]) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        problem = judge(error, request)
        body = body_of(problem, request.state.request_id)
        return Response(body, status_code=problem.status, headers=headers_of(problem))

    return answer


def _of_framework(error: HTTPException, allowed: str | None) -> Problem:
    """Name the framework's refusal; it knows neither the hot routes nor a path's other routes."""
    if isinstance(error.__cause__, Problem):
        return error.__cause__
    slug = SLUG_OF_STATUS.get(error.status_code, "internal-error")
    allow = (error.headers or {}).get("Allow") and (allowed or (error.headers or {})["Allow"])
    return Problem(slug=slug, headers={"allow": allow} if allow else {})


def _of_validation(error: RequestValidationError) -> Problem:
    """Name every broken rule; the words are the validator's, never the caller's."""
    found = tuple(_rule(each) for each in error.errors())
    first = invalid("", "the request breaks a rule")
    return Problem(slug=first.slug, detail=found[0][1] if found else first.detail, errors=found)


def _rule(each: dict[str, Any]) -> tuple[str, str]:
    """Return pointer and message of one broken rule; its own input is left out."""
    place = each["loc"][1:]
    words = {
        "extra_forbidden": "unknown member",
        "missing": "is required",
        "string_pattern_mismatch": "has characters or a form that its rule refuses",
    }
    message = words.get(each["type"], each["msg"])
    return pointer_to(place), message[:1].lower() + message[1:]
