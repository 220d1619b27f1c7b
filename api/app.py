"""The framework's application: the cold routes, their problems, and the served contract.

This is a factory: nothing is global and nothing is opened here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from math import inf
from typing import Any, Final

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from api.console.static_file import file_content
from api.docs_page import docs_page
from api.http.exchange import AsgiScope
from api.http.json_body import UNKNOWN_NAME, pointer_to
from api.http.problems import Problem, all_invalid, body_of, headers_of, problem_of
from api.http.shared_read import SharedRead
from outbox.clock import SystemClock
from outbox.errors import OutboxError

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
Contract = Callable[[], dict[str, Any]]

ERRORS_MAX: Final = 100
"""Most broken rules that one answer lists."""
NO_CACHE: Final = {"cache-control": "no-cache"}
NO_ROBOTS: Final = b"User-agent: *\nDisallow: /\n"
RULES: Final = {
    "extra_forbidden": UNKNOWN_NAME,
    "missing": "is required",
    "model_attributes_type": "must be an object",
    "tuple_type": "must be a list",
}
"""By the validator's type of an error, where its own words are those of Python."""
_SAID_OF: Final = re.compile(r"^[A-Z]\w+ should")
SLUG_OF_STATUS: Final = {400: "malformed-json", 404: "not-found"}


def create_app(
    routers: Sequence[APIRouter],
    is_hot: Callable[[str], bool],
    contract: Contract,
    *,
    lifespan: Lifespan,
) -> FastAPI:
    """Return the application of the cold routes.

    ``is_hot`` knows the paths of the hot routes; ``contract`` builds the contract of all routes.
    """
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    # The framework builds an included route once more for each application, at the first request.
    app.router.routes.extend(route for router in routers for route in router.routes)
    _answer_problems(app, is_hot)
    _serve_contract(app, contract)
    return app


def _serve_contract(app: FastAPI, contract: Contract) -> None:
    """Serve the OpenAPI document and its page, and what browsers ask for by themselves."""
    app.add_route(
        "/openapi.json", _constant(lambda: msgspec.json.encode(contract()), "application/json")
    )
    app.add_route("/robots.txt", _constant(lambda: NO_ROBOTS, "text/plain; charset=utf-8"))
    app.add_route("/favicon.ico", _constant(lambda: file_content("icon.svg"), "image/svg+xml"))
    app.add_route(
        "/docs", _constant(lambda: docs_page(contract()).encode(), "text/html; charset=utf-8")
    )


def _constant(render: Callable[[], bytes], media_type: str) -> Callable[..., Awaitable[Response]]:
    """Return a route that always answers the same.

    The first request renders it, in a thread: the contract takes a quarter of a second.
    """
    rendered = SharedRead(partial(asyncio.to_thread, render), SystemClock(), inf)

    async def answer(_: Request) -> Response:
        return Response(await rendered.get(), headers=NO_CACHE, media_type=media_type)

    return answer


def _answer_problems(app: FastAPI, is_hot: Callable[[str], bool]) -> None:
    """Turn every error of a route, including the framework's errors, into a problem."""

    def of_framework(error: HTTPException, request: Request) -> Problem:
        allowed = allowed_methods(app.router.routes, request.scope)
        if is_hot(request.url.path):
            allowed.add("POST")
        return _of_framework(error, request.method, allowed)

    translators: tuple[tuple[type[Exception], Callable[[Any, Request], Problem]], ...] = (
        (Problem, lambda problem, _: problem),
        (OutboxError, lambda error, request: problem_of(error, request.state.request_id)),
        (RequestValidationError, lambda error, _: _of_validation(error)),
        (HTTPException, of_framework),
        (Exception, lambda _, __: Problem(slug="internal-error")),
    )
    for kind, translate in translators:
        app.add_exception_handler(kind, _handler(translate))


def _handler(translate: Callable[[Any, Request], Problem]) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        problem = translate(error, request)
        body = body_of(problem, request.state.request_id)
        return Response(body, status_code=problem.status, headers=headers_of(problem))

    return answer


def allowed_methods(routes: Sequence[BaseRoute], scope: AsgiScope) -> set[str]:
    """Return the methods that the routes have at the path of a request."""
    found = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    return {method for route in found for method in getattr(route, "methods", None) or ()}


def _of_framework(error: HTTPException, method: str, allowed: set[str]) -> Problem:
    """Translate the framework's refusal; it knows one route of a path, and no hot one."""
    if isinstance(error.__cause__, Problem):
        return error.__cause__
    if error.status_code in (404, 405) and allowed and method not in allowed:
        headers = {"allow": ", ".join(sorted(allowed))}
        return Problem(slug="method-not-allowed", headers=headers)
    return Problem(slug=SLUG_OF_STATUS.get(error.status_code, "internal-error"))


def _of_validation(error: RequestValidationError) -> Problem:
    """List every broken rule in the validator's words, never in the caller's."""
    return all_invalid([_rule(each) for each in error.errors()[:ERRORS_MAX]])


def _rule(each: dict[str, Any]) -> tuple[str, str]:
    """Return pointer and message of one broken rule, without the caller's input."""
    rule = RULES.get(each["type"]) or _SAID_OF.sub("must", each["msg"])
    return pointer_to(each["loc"][1:]), rule.removeprefix("Value error, ")
