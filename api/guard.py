"""Checks that every request passes before it reaches a route.

The order is: size and form of the head, authentication, scope, media type and size of the body,
room for one more request. Public paths take no body. A request takes room once its body is
complete, so slow bodies take none. Under load a prepare is refused before an end is delayed: an end
is never refused for load (P25).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import count
from typing import Any, Final

from api.console.console import Console
from api.http.authentication.authenticator import Authenticator
from api.http.exchange import (
    AUTHENTICATED,
    WHOLE_ANSWER,
    AsgiScope,
    HotRoute,
    HttpRequest,
    Receive,
    ResponseSender,
    Send,
)
from api.http.framing import WITH_BODY, fields_of, validate_framing
from api.http.in_flight import InFlight, UnansweredEnds
from api.http.problems import Problem, invalid, problem_of
from api.http.rate_limits import RateLimit
from api.http.request_limits import (
    BodyReader,
    ClientGone,
    HttpLimits,
    validate_head,
    validate_media_type,
)
from api.shared_answers import App, SharedAnswers
from outbox.access import NOBODY, Caller
from outbox.clock import Clock
from outbox.errors import OutboxError
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

PUBLIC: Final = frozenset({"/livez", "/readyz", "/version", "/metrics", "/openapi.json", "/docs"})
PUBLIC_PREFIX: Final = "/problems/"
SHARED: Final = frozenset({"/readyz", "/metrics"})
"""Public paths that read the database."""
READS: Final = frozenset({"GET", "HEAD"})
REJECTIONS: Final = frozenset({"overloaded", "rate-limited", "unauthenticated"})
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}(?![\s\S])")


class Guard:
    """The outermost ASGI application of the service."""

    def __init__(
        self,
        cold: App,
        find_hot_route: Callable[[str, str], HotRoute | None],
        *,
        authenticator: Authenticator,
        limits: HttpLimits,
        in_flight: InFlight,
        ends: UnansweredEnds,
        reads: RateLimit,
        metrics: Metrics,
        clock: Clock,
        console: Console | None = None,
        lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._cold = cold
        self._console = console
        self._find_hot_route = find_hot_route
        self._lifespan = lifespan
        self._authenticator = authenticator
        self._limits = limits
        self._bodies = BodyReader(limits.held_bytes)
        self._reads = reads
        self._metrics = metrics
        self._clock = clock
        self._in_flight = in_flight
        self._ends = ends
        self._shared = SharedAnswers(cold)
        self._prefix = os.urandom(6).hex()
        self._numbers = count(1)
        self._observed: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open the service for a block, where no server does it."""
        return self._lifespan()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] != "http":
            await self._cold(scope, receive, send)
            return
        started = self._clock.monotonic()
        headers = fields_of(scope["headers"])
        at_once = WHOLE_ANSWER in scope.get("extensions", {})
        sender = ResponseSender(send, self._request_id(headers), at_once=at_once)
        route = self._find_hot_route(scope["method"], scope["path"])
        try:
            await self._serve(scope, headers, receive, sender, route)
        except Problem as problem:
            self._count_rejected(problem)
            await sender.problem(problem)
        except OutboxError as error:
            await sender.problem(problem_of(error, sender.request_id))
        except ClientGone:
            return
        except Exception:  # the outermost handler: nothing above turns it into a response
            get_logger().exception(Event.INTERNAL_ERROR, request_id=sender.request_id)
            await sender.problem(Problem(slug="internal-error"))
        finally:
            self._bodies.release(receive)
            self._observe(scope, route, sender.status, started)

    async def _serve(
        self,
        scope: AsgiScope,
        headers: dict[bytes, bytes],
        receive: Receive,
        sender: ResponseSender,
        route: HotRoute | None,
    ) -> None:
        console = self._console
        if console is not None and not console.owns(scope["path"]):
            console = None
        raw_path = scope.get("raw_path") or scope["path"].encode()
        try:
            validate_head(raw_path, scope["query_string"], scope["headers"], self._limits)
        except Problem as problem:
            if console is None:
                raise
            await console.refuse(problem, scope, sender.send)
            return
        validate_framing(scope["method"], scope["http_version"], scope["headers"], headers)
        self._authenticator.admit(headers)
        if is_public(scope["path"]):
            await self._serve_public(scope, receive, sender)
            return
        if console is not None:
            await self._serve_console(console, scope, headers, receive, sender)
            return
        caller = await self._authenticator.caller(headers.get(b"authorization"))
        _mark_authenticated(scope, caller)
        self._refuse_for_load(route)
        if route is None:
            body = await self._cold_body(scope, headers, receive, sender, caller)
        else:
            body = await self._hot_body(scope, headers, receive, caller, route)
        self._refuse_for_load(route)  # others may have come while the body arrived
        if route is None:
            scope.setdefault("state", {}).update(caller=caller, request_id=sender.request_id)
            with self._in_flight:
                await self._cold(scope, _replay(body, receive), self._resting(sender.send))
        else:
            request = HttpRequest(scope["path"], headers, body, caller, sender.request_id)
            place = self._ends.place(caller.tenant, len(body)) if route.is_end else nullcontext()
            with place, self._in_flight:
                response = await route.serve(request)
            await sender.respond(response)

    def _resting(self, send: Send) -> Send:
        """Return a send whose waits, for a client that does not read, take no room."""

        async def rest(message: MutableMapping[str, Any]) -> None:
            with self._in_flight.resting():
                await send(message)

        return rest

    def _refuse_for_load(self, route: HotRoute | None) -> None:
        if route is None or not route.is_end:
            self._in_flight.refuse_when_full()

    async def _serve_public(
        self, scope: AsgiScope, receive: Receive, sender: ResponseSender
    ) -> None:
        """Answer anybody, without reading a body."""
        if scope["method"] not in READS:
            raise Problem(slug="method-not-allowed", headers={"allow": "GET, HEAD"})
        scope.setdefault("state", {}).update(caller=NOBODY, request_id=sender.request_id)
        asked = {**scope, "method": "GET"}  # the server leaves out the body of an answer to HEAD
        if scope["path"] in SHARED and not scope["query_string"]:
            await self._shared.serve(asked, sender.send)
        else:
            await self._cold(asked, _replay(b"", receive), sender.send)
            scope["route"] = asked.get("route")

    async def _serve_console(
        self,
        console: Console,
        scope: AsgiScope,
        headers: dict[bytes, bytes],
        receive: Receive,
        sender: ResponseSender,
    ) -> None:
        """Answer a browser: with a session as an authenticated caller, else as a stranger."""
        try:
            visitor = await console.visitor(headers)
            caller, body = visitor.caller, b""
            if visitor.is_known:
                _mark_authenticated(scope, caller)
                self._in_flight.refuse_when_full()
                if scope["method"] in READS:
                    sender.extra_headers.extend(self._reads.spend(caller))
            most = console.form_max_bytes(visitor, scope["path"])
            if scope["method"] in WITH_BODY and most is not None:
                body = await self._body(receive, headers, most, caller)
            scope.setdefault("state", {}).update(visitor=visitor, request_id=sender.request_id)
            send = self._resting(sender.send) if visitor.is_known else sender.send
            with self._in_flight if visitor.is_known else nullcontext():
                await console(scope, _replay(body, receive), send)
            self._reads.owe(caller, visitor.calls.made - 1)
        except (Problem, OutboxError) as error:
            await console.refuse(error, scope, sender.send)
        except ClientGone:
            raise
        except Exception:  # a person reads the answer: a page, not the document of a problem
            if sender.status:
                raise
            get_logger().exception(Event.INTERNAL_ERROR, request_id=sender.request_id)
            await console.refuse(Problem(slug="internal-error"), scope, sender.send)

    async def _hot_body(
        self,
        scope: AsgiScope,
        headers: dict[bytes, bytes],
        receive: Receive,
        caller: Caller,
        route: HotRoute,
    ) -> bytes:
        if not caller.has(route.scope):
            raise Problem(slug="scope-missing", detail=f"the key needs {route.scope}")
        if scope["query_string"]:
            raise invalid("", "this route takes no query parameters")
        validate_media_type(headers)
        max_bytes = self._limits.batch_bytes if route.is_batch else self._limits.body_bytes
        return await self._body(receive, headers, max_bytes, caller, is_end=route.is_end)

    async def _cold_body(
        self,
        scope: AsgiScope,
        headers: dict[bytes, bytes],
        receive: Receive,
        sender: ResponseSender,
        caller: Caller,
    ) -> bytes:
        if scope["method"] in READS:
            sender.extra_headers.extend(self._reads.spend(caller))
        if scope["method"] not in WITH_BODY:
            return b""
        body = await self._body(receive, headers, self._limits.body_bytes, caller)
        if body:
            validate_media_type(headers)
        return body

    async def _body(
        self,
        receive: Receive,
        headers: dict[bytes, bytes],
        max_bytes: int,
        caller: Caller,
        *,
        is_end: bool = False,
    ) -> bytes:
        try:
            return await self._bodies.read(receive, headers, max_bytes, caller.tenant)
        except TimeoutError:
            slug = "request-timeout" if is_end else "overloaded"
            detail = "too many bytes of the tenant's incomplete requests"
            closing = {"connection": "close"}
            raise Problem(slug=slug, detail=detail, headers=closing) from None

    def _count_rejected(self, problem: Problem) -> None:
        if problem.slug in REJECTIONS:
            self._metrics["http_rejected_total"].labels(problem.slug).inc()

    def _request_id(self, headers: dict[bytes, bytes]) -> str:
        """Return the caller's request id if it is well formed, else a new one."""
        given = headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.match(given):
            return given.decode()
        return f"{self._prefix}-{next(self._numbers):x}"

    def _observe(
        self, scope: AsgiScope, route: HotRoute | None, status: int, started: float
    ) -> None:
        template = route.template if route else _template_of(scope)
        key = (template, scope["method"], status)
        series = self._observed.get(key)
        if series is None:
            series = self._observed[key] = (
                self._metrics["http_requests_total"].labels(*key),
                self._metrics["http_request_duration_seconds"].labels(*key),
            )
        series[0].inc()
        series[1].observe(self._clock.monotonic() - started)


def _template_of(scope: AsgiScope) -> str:
    """Return the cold route in its general form, so that no caller adds a metric."""
    if scope["path"] in PUBLIC:
        return str(scope["path"])
    return str(getattr(scope.get("route"), "path", "unmatched"))


def _mark_authenticated(scope: AsgiScope, caller: Caller) -> None:
    """Report to the server whose request this is."""
    authenticated = scope.get("extensions", {}).get(AUTHENTICATED)
    if authenticated is not None:
        authenticated(caller.tenant)


def is_public(path: str) -> bool:
    """Return True for a path that needs no key."""
    return path in PUBLIC or path.startswith(PUBLIC_PREFIX)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives the whole body once, then passes on the server's messages."""
    unread = [body]

    async def replay() -> MutableMapping[str, Any]:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
