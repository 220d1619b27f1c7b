"""Checks that every request passes before it reaches a route.

There are four ways in: public paths, the console, the hot routes and the framework's routes. Public
paths take no body. For the others the order is: authentication, scope, media type and size of the
body, room for one more request. Under load a prepare is refused before an end is delayed: an end is
never refused for load (P25). The proxy in front ends slow, idle and too many connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final

from api.console import PREFIX
from api.console.console import Console
from api.http.admission import BATCH_BODY_MAX_BYTES, BODY_MAX_BYTES, Admission, require_scope
from api.http.exchange import App, AsgiScope, Exchange, HotRoute, HttpResponse, Receive, Send
from api.http.problems import Problem, invalid, problem_of
from api.http.request_body import ClientGone, declares_body, read_body, replay, too_large
from api.http.request_body import validate_media_type as validate_type
from api.http.request_metrics import RequestMetrics
from outbox.access import NOBODY, Caller
from outbox.errors import OutboxError
from outbox.telemetry.events import Event, get_logger

PUBLIC: Final = frozenset(
    {
        *("/livez", "/readyz", "/version", "/metrics", "/openapi.json", "/docs"),
        *("/favicon.ico", "/robots.txt"),
    }
)
PUBLIC_PREFIX: Final = "/problems/"
READS: Final = frozenset({"GET", "HEAD"})
WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


TO_CONSOLE: Final = HttpResponse(303, b"", [(b"location", PREFIX.encode())])
"""For a browser that knows only the address."""


class Guard:
    """The outermost ASGI application of the service."""

    def __init__(
        self,
        cold: App,
        find_hot_route: Callable[[str, str], HotRoute | None],
        admission: Admission,
        observed: RequestMetrics,
        console: Console,
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        """Take the framework's application, and what opens the service without a server."""
        self._cold = cold
        self._find_hot_route = find_hot_route
        self._admission = admission
        self._observed = observed
        self._console = console
        self.lifespan = lifespan

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] != "http":
            await self._cold(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        route = self._find_hot_route(exchange.method, exchange.path)
        try:
            await self._serve(exchange, route)
        except Problem as problem:
            self._observed.refused(problem)
            await self._refuse(exchange, problem)
        except OutboxError as error:
            await self._refuse(exchange, problem_of(error, exchange.request_id))
        except ClientGone:
            return
        except Exception:  # the outermost handler: nothing above turns it into a response
            get_logger().exception(Event.INTERNAL_ERROR, request_id=exchange.request_id)
            await self._refuse(exchange, Problem(slug="internal-error"))
        finally:
            self._observed.served(exchange)

    async def _refuse(self, exchange: Exchange, problem: Problem) -> None:
        """Answer with a problem, unless an answer has begun; a browser gets it as a page."""
        if exchange.status:
            return
        if exchange.for_browser:
            await self._console.refuse(problem, exchange.scope, exchange.receive, exchange.send)
        else:
            await exchange.problem(problem)

    async def _serve(self, exchange: Exchange, route: HotRoute | None) -> None:
        """Send the request on its way in; the only place that tells them apart."""
        self._admission.authenticator.admit(exchange.headers)
        if route is not None:
            await self._serve_hot(exchange, route)
        elif is_public(exchange.path):
            await self._serve_public(exchange)
        elif exchange.path == "/" and b"text/html" in exchange.headers.get(b"accept", b""):
            await exchange.respond(TO_CONSOLE)
        elif self._console.owns(exchange.path):
            await self._serve_console(exchange)
        else:
            await self._serve_cold(exchange)

    async def _serve_hot(self, exchange: Exchange, route: HotRoute) -> None:
        """Answer a prepare or an end, without the framework."""
        exchange.scope["route"] = route
        admission, headers = self._admission, exchange.headers
        caller = await admission.authenticator.caller(headers.get(b"authorization"))
        require_scope(caller, route.scope)
        if exchange.scope["query_string"]:
            raise invalid("", "may have no query parameters")
        validate_type(headers)
        most = BATCH_BODY_MAX_BYTES if route.is_batch else BODY_MAX_BYTES
        with admission.place(caller, headers, most, is_end=route.is_end):
            exchange.caller, exchange.body = caller, await read_body(exchange.receive, most)
            await exchange.respond(await route.serve(exchange))

    async def _serve_cold(self, exchange: Exchange) -> None:
        """Answer a request of the framework's routes."""
        admission, headers = self._admission, exchange.headers
        caller = await admission.authenticator.caller(headers.get(b"authorization"))
        async with self._admitted(exchange, caller, BODY_MAX_BYTES) as body:
            if body or declares_body(headers):
                validate_type(headers)
            exchange.share(caller=caller)
            receive = replay(body, exchange.receive)
            await self._cold(exchange.scope, receive, exchange.send)

    async def _serve_public(self, exchange: Exchange) -> None:
        """Answer anybody, without reading a body."""
        if exchange.method not in READS:
            raise Problem(slug="method-not-allowed", headers={"allow": "GET, HEAD"})
        if declares_body(exchange.headers):
            raise too_large(0)
        exchange.share(caller=NOBODY)
        # The server leaves out the body of an answer to HEAD.
        asked = {**exchange.scope, "method": "GET"}
        await self._cold(asked, replay(b"", exchange.receive), exchange.send)
        exchange.scope["route"] = asked.get("route")

    async def _serve_console(self, exchange: Exchange) -> None:
        """Answer a browser: with a session as an authenticated caller, else as a stranger."""
        exchange.for_browser = True
        visitor = await self._console.visitor(exchange.headers)
        known = visitor.caller if visitor.is_known else None
        most = self._console.form_max_bytes(visitor, exchange.path)
        async with self._admitted(exchange, known, most) as body:
            exchange.share(visitor=visitor)
            await self._console(exchange.scope, replay(body, exchange.receive), exchange.send)
        self._admission.reads.owe(visitor.caller, len(visitor.calls) - 1)

    @asynccontextmanager
    async def _admitted(
        self, exchange: Exchange, caller: Caller | None, most: int
    ) -> AsyncIterator[bytes]:
        """Give a request its place for the block, and its body; a stranger has no place."""
        admission = self._admission
        if caller is not None and exchange.method in READS:
            exchange.extra_headers.extend(admission.reads.spend(caller))
        most = most if exchange.method in WITH_BODY else 0
        with admission.place(caller, exchange.headers, most) if caller else nullcontext():
            yield await read_body(exchange.receive, most) if most else b""


def is_public(path: str) -> bool:
    """Return True for a path that needs no key."""
    return path in PUBLIC or path.startswith(PUBLIC_PREFIX)
