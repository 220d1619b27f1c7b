"""The console: from the cookie of a browser to the caller, then to a page.

A request is a form only if its session's token is in it and the browser does not mark it as sent by
another site. What a page may show and do is decided by the REST routes, which it calls.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

from jinja2 import Environment
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from api.console import PREFIX
from api.console.in_process_api import InProcessApi, Refused
from api.console.page_renderer import page_templates
from api.console.pages.site_map import FORMS, NAVIGATION, PAGES, Handler
from api.console.session import COOKIE, Session, SessionSeal, sealed_session
from api.console.static_file import NAMES, serve_static_file, static_url
from api.console.visit import Visit, asked_address, read_form
from api.http.admission import Authenticator
from api.http.authentication.loopback_authenticator import LOOPBACK_HOST
from api.http.exchange import App
from api.http.problems import WAITING_STATUSES, Problem, document
from outbox.access import NOBODY, Caller
from outbox.settings.service_manager import kafka_command, start_command

LOGIN: Final = "/login"
FORM_MAX_BYTES: Final = 65_536
LOGIN_MAX_BYTES: Final = 4096
FORM_TYPE: Final = "application/x-www-form-urlencoded"
OTHER_SITES: Final = frozenset({"cross-site", "same-site"})
RouteEndpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sends a request: the caller, and the session of the browser if it has one."""

    caller: Caller
    session: Session | None
    calls: list[str] = field(default_factory=list)
    """What its page asked of the API."""

    @property
    def is_known(self) -> bool:
        """True if the caller may see pages."""
        return self.caller is not NOBODY


class Console:
    """The pages; the guard reads the bodies, and limits them."""

    def __init__(
        self,
        routes: App,
        authenticator: Authenticator,
        seal: SessionSeal,
        *,
        bootstrap_servers: str,
        needs_key: bool,
        trace_url: str | None,
        version: str,
    ) -> None:
        """Take the application of the REST routes, and whether callers need a key.

        ``trace_url`` is the address of a trace viewer, with ``{trace_id}`` in it.
        """
        self._routes = routes
        self._authenticator = authenticator
        self._seal = seal
        self._needs_key = needs_key
        self._templates = _templates(needs_key, trace_url, version, bootstrap_servers)
        self._router = Router(redirect_slashes=False)
        self._router.add_route(f"{PREFIX}/static/{{name}}", serve_static_file, methods=["GET"])
        for method, handlers in (("GET", PAGES), ("POST", FORMS)):
            for path, handler in handlers.items():
                endpoint = self._endpoint(path, handler)
                self._router.add_route(PREFIX + path, endpoint, methods=[method])
        nothing, others = self._endpoint("/{other}", _nothing_here), f"{PREFIX}{{other:path}}"
        self._router.add_route(others, nothing, methods=["GET", "POST"])

    def owns(self, path: str) -> bool:
        """Return True for a path of the console."""
        return path == PREFIX or path.startswith(PREFIX + "/")

    async def visitor(self, headers: dict[bytes, bytes]) -> Visitor:
        """Return who sends a request with these headers. Raises Problem, DatabaseUnavailable."""
        return await self._visitor(self._seal.open(sealed_session(headers.get(b"cookie", b""))))

    async def _visitor(self, session: Session | None) -> Visitor:
        token = session.token if session else None
        if self._needs_key and token is None:
            return Visitor(NOBODY, session)
        try:
            caller = await self._authenticator.caller(b"Bearer " + (token or "").encode())
        except Problem as problem:
            if problem.slug != "unauthenticated":
                raise
            return Visitor(NOBODY, session and replace(session, token=None))
        return Visitor(caller, session or self._seal.begin(None, "console"))

    def form_max_bytes(self, visitor: Visitor, path: str) -> int:
        """Return how large a form of this visitor may be; 0 if it is not read."""
        if visitor.is_known:
            return FORM_MAX_BYTES
        return LOGIN_MAX_BYTES if path == PREFIX + LOGIN else 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; its state holds ``visitor`` and ``request_id``."""
        await self._router(scope, receive, send)

    async def refuse(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that was refused before it reached a page."""
        visit = self._visit(Request(scope), Visitor(NOBODY, None))
        response = _refusal(visit, document(problem, visit.request_id))
        await response(scope, receive, send)

    def _endpoint(self, path: str, handler: Handler) -> RouteEndpoint:
        async def serve(request: Request) -> Response:
            visitor: Visitor = request.state.visitor
            if not visitor.is_known and path != LOGIN:
                return self._login_first(request)
            visit = self._visit(request, visitor)
            try:
                if request.method == "POST":
                    visit.form = await _compared_form(request, visitor.session)
                response = await handler(visit)
            except Refused as refused:
                response = _refusal(visit, refused.problem)
            except Problem as problem:
                response = _refusal(visit, document(problem, visit.request_id))
            self._keep_session(visit, response)
            return response

        return serve

    def _visit(self, request: Request, visitor: Visitor) -> Visit:
        request_id = request.scope.get("state", {}).get("request_id", "")
        return Visit(
            request=request,
            request_id=request_id,
            caller=visitor.caller,
            session=visitor.session or self._seal.begin(None, ""),
            api=InProcessApi(self._routes, visitor.caller, request_id, visitor.calls),
            templates=self._templates,
            log_in=self._log_in,
        )

    async def _log_in(self, token: str, operator: str) -> Session | None:
        """Return the session of a key; None if it is not valid. Raises as ``visitor``."""
        session = self._seal.begin(token, operator)
        return session if (await self._visitor(session)).is_known else None

    def _login_first(self, request: Request) -> Response:
        """Send a stranger to the login, and from there back to the page."""
        visit = self._visit(request, Visitor(NOBODY, None))
        if visit.is_refresh:
            return visit.reload()
        if request.method == "POST":
            return visit.see(LOGIN, done="session-over")
        return visit.see(LOGIN, next=asked_address(request))

    def _keep_session(self, visit: Visit, response: Response) -> None:
        """Renew the cookie when a person loads a page; a refresh of the page itself does not."""
        if visit.is_refresh or visit.session is None:
            return
        host = visit.request.headers.get("host", "").encode("latin-1")
        response.set_cookie(
            COOKIE,
            self._seal.seal(visit.session),
            path=PREFIX,
            httponly=True,
            samesite="lax",
            secure=not LOOPBACK_HOST.fullmatch(host),
        )


@cache
def _templates(
    needs_key: bool, trace_url: str | None, version: str, bootstrap_servers: str
) -> Environment:
    """Return the templates; consoles of one configuration share them, compiled once."""
    return page_templates(
        prefix=PREFIX,
        needs_key=needs_key,
        trace_url=trace_url,
        version=version,
        navigation=NAVIGATION,
        static={name: static_url(name) for name in NAMES},
        kafka_command=partial(kafka_command, bootstrap_servers=bootstrap_servers),
        start_command=start_command,
    )


async def _nothing_here(visit: Visit) -> Response:
    raise Problem(slug="not-found")


def _refusal(visit: Visit, problem: Mapping[str, Any]) -> Response:
    """Return the page of a problem document."""
    status, is_form = problem["status"], visit.request.method == "POST"
    response = visit.page(
        "refused.html",
        status=status,
        title=problem["title"],
        problem=problem,
        tries_again=status == 503 and not is_form,
        is_form=is_form,
    )
    if status in WAITING_STATUSES:
        response.headers["retry-after"] = "2"
    return response


async def _compared_form(request: Request, session: Session | None) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form that this session's page sent. Raises Problem."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site in OTHER_SITES or (
        origin is not None and origin.partition("://")[2] != request.headers.get("host")
    )
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise Problem(slug="unsupported-media-type", detail=f"a form is {FORM_TYPE}")
    try:
        form = read_form(await request.body())
    except ValueError:
        raise Problem(slug="invalid-request", detail="this is not a form") from None
    given = form.get("csrf", "")
    if foreign or session is None or not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise Problem(slug="csrf-refused")
    return form
