"""What every request passes before a route sees it, in this order: size of its head, room for one
more, who is calling, kind and size of its body.

Authentication comes before the body is read, and a prepare is refused before an end is delayed: an
end is never turned away for load (P25).
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import count
from typing import Any, Final

from api.http.auth import Authenticator
from api.http.exchange import Exchange, Receive, Reply, Scope, Send
from api.http.problems import Problem, invalid, problem_of
from api.http.rate_limits import RateLimit
from api.http.request_limits import ClientGone, HttpLimits, judge_head, judge_media_type, read_body
from api.ingest.hot_routes import HotRoute, HotRoutes
from outbox.access import ANYBODY
from outbox.clock import Clock
from outbox.errors import OutboxError
from outbox.telemetry.events import get_logger
from outbox.telemetry.metrics import Metrics

App = Callable[[Scope, Receive, Send], Awaitable[None]]

PUBLIC: Final = frozenset({"/livez", "/readyz", "/version", "/metrics", "/openapi.json", "/docs"})
PUBLIC_PREFIX: Final = "/problems/"
READS: Final = frozenset({"GET", "HEAD"})
REJECTIONS: Final = frozenset({"overloaded", "rate-limited"})
WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}(?![\s\S])")


class Guard:
    """The outermost ASGI application of the service."""

    def __init__(
        self,
        cold: App,
        hot: HotRoutes,
        *,
        authenticator: Authenticator,
        limits: HttpLimits,
        reads: RateLimit,
        metrics: Metrics,
        clock: Clock,
        lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._cold = cold
        self._lifespan = lifespan
        self._hot = hot
        self._authenticator = authenticator
        self._limits = limits
        self._reads = reads
        self._metrics = metrics
        self._clock = clock
        self._inflight = 0
        self._prefix = os.urandom(6).hex()
        self._numbers = count(1)
        self._observed: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open the service for a block, where no server does it."""
        return self._lifespan()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] != "http":
            await self._cold(scope, receive, send)
            return
        started = self._clock.monotonic()
        headers = dict(scope["headers"])
        reply = Reply(send, self._request_id(headers))
        route = self._hot.find(scope["method"], scope["path"])
        self._inflight += 1
        try:
            await self._serve(scope, headers, receive, reply, route)
        except Problem as problem:
            self._count_rejected(problem)
            await reply.problem(problem)
        except OutboxError as error:
            await reply.problem(problem_of(error))
        except ClientGone:
            return
        except Exception:  # the edge: nobody above us turns it into an answer
            get_logger().exception("internal_error", request_id=reply.request_id)
            await reply.problem(Problem(slug="internal-error"))
        finally:
            self._inflight -= 1
            self._observe(scope, route, reply.status, started)

    async def _serve(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        reply: Reply,
        route: HotRoute | None,
    ) -> None:
        raw_path = scope.get("raw_path") or scope["path"].encode()
        judge_head(raw_path, scope["query_string"], scope["headers"], self._limits)
        if route is None:
            await self._serve_cold(scope, headers, receive, reply)
            return
        if not route.is_end:
            self._refuse_when_full()
        caller = await self._authenticator.caller(headers.get(b"authorization"))
        if not caller.has(route.scope):
            raise Problem(slug="scope-missing", detail=f"the key needs {route.scope}")
        if scope["query_string"]:
            raise invalid("", "this route takes no query parameters")
        judge_media_type(headers)
        most = self._limits.batch_bytes if route.is_batch else self._limits.body_bytes
        body = await read_body(receive, headers, most)
        exchange = Exchange(scope["path"], headers, body, caller, reply.request_id)
        await reply.answer(await route.serve(exchange))

    async def _serve_cold(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, reply: Reply
    ) -> None:
        """Hand the request, its body already read and counted, to the framework."""
        path = scope["path"]
        caller = ANYBODY
        if not is_public(path):
            self._refuse_when_full()
            caller = await self._authenticator.caller(headers.get(b"authorization"))
            if scope["method"] in READS:
                reply.fields.extend(self._reads.spend(caller))
        body = b""
        if scope["method"] in WITH_BODY:
            body = await read_body(receive, headers, self._limits.body_bytes)
            if body:
                judge_media_type(headers)
        scope.setdefault("state", {}).update(caller=caller, request_id=reply.request_id)
        await self._cold(scope, _replay(body, receive), reply.send)

    def _refuse_when_full(self) -> None:
        if self._inflight > self._limits.inflight:
            raise Problem(slug="overloaded", retry_after_seconds=1)

    def _count_rejected(self, problem: Problem) -> None:
        if problem.slug in REJECTIONS:
            self._metrics["http_rejected_total"].labels(problem.slug).inc()

    def _request_id(self, headers: dict[bytes, bytes]) -> str:
        """Return the caller's request id if it is well formed, else a new one."""
        given = headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.match(given):
            return given.decode()
        return f"{self._prefix}-{next(self._numbers):x}"

    def _observe(self, scope: Scope, route: HotRoute | None, status: int, started: float) -> None:
        template = route.template if route else getattr(scope.get("route"), "path", "unmatched")
        key = (template, scope["method"], status)
        series = self._observed.get(key)
        if series is None:
            series = self._observed[key] = (
                self._metrics["http_requests_total"].labels(*key),
                self._metrics["http_request_duration_seconds"].labels(*key),
            )
        series[0].inc()
        series[1].observe(self._clock.monotonic() - started)


def is_public(path: str) -> bool:
    """Say whether a path needs no key."""
    return path in PUBLIC or path.startswith(PUBLIC_PREFIX)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives the whole body once, then what the server says."""
    unread = [body]

    async def replay() -> MutableMapping[str, Any]:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
