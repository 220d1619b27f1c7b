"""One HTTP exchange, the request and its response, and a hot route."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from random import getrandbits
from time import monotonic
from typing import Any, Final

from msgspec import Struct

from api.http.problems import Problem, body_of, headers_of
from outbox.access import NOBODY, Scope

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}(?![\s\S])")
LISTS: Final = frozenset({b"prefer", b"if-match", b"if-none-match"})
JSON: Final = (b"content-type", b"application/json")


class HttpResponse(Struct, frozen=True, gc=False):
    """A complete response."""

    status: int
    body: bytes
    headers: HeaderList


@dataclass(frozen=True, slots=True)
class HotRoute:
    """One hot route: its name in metrics and spans, its access scope and its handler."""

    path: str
    scope: Scope
    is_end: bool
    is_batch: bool
    serve: Callable[[Exchange], Awaitable[HttpResponse]]


class Exchange:
    """A request as the server gives it, and its one response with the request's id."""

    def __init__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        self.began = monotonic()
        self.scope = scope
        self.receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = _fields_of(scope["headers"])
        if len(self.headers) != len(scope["headers"]):
            scope["headers"] = list(self.headers.items())  # the framework takes the first line
        self.request_id = _request_id(self.headers)
        self.caller = NOBODY
        self.body = b""
        """Of a hot route: complete, and within its limit."""
        self.for_browser = False
        """True if a person reads the answer, so that a problem is a page."""
        self.status = 0
        """Of the response; 0 until it has started."""
        self.extra_headers: HeaderList = []
        """Added to the response, whatever its status."""

    def header(self, name: bytes) -> str | None:
        """Return a header's text; header bytes are Latin-1 (RFC 9110)."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def share(self, **state: Any) -> None:
        """Let the route see these values, and the request's id."""
        self.scope.setdefault("state", {}).update(state, request_id=self.request_id)

    def template(self) -> str:
        """Return the route in its general form, so that no caller adds a metric."""
        return str(getattr(self.scope.get("route"), "path", "unmatched"))

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass an ASGI message of the response on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._own_headers()]
        await self._send(message)

    async def respond(self, response: HttpResponse) -> None:
        """Send a complete response."""
        self.status = status = response.status
        length = (b"content-length", b"%d" % len(response.body))
        headers = [*response.headers, length, *self._own_headers()]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": response.body})

    async def problem(self, problem: Problem) -> None:
        """Send a problem document."""
        headers = [(name.encode(), text.encode()) for name, text in headers_of(problem).items()]
        body = body_of(problem, self.request_id)
        await self.respond(HttpResponse(problem.status, body, headers))

    def _own_headers(self) -> HeaderList:
        return [*self.extra_headers, (b"x-request-id", self.request_id.encode())]


def entity_tag(body: bytes) -> str:
    """Return the ``ETag`` of a representation."""
    return f'"{sha256(body).hexdigest()[:32]}"'


def is_known(if_none_match: str | None, tag: str) -> bool:
    """Return True if the caller has what the tag stands for (RFC 9110 13.1.2)."""
    if if_none_match is None:
        return False
    known = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return "*" in known or tag in known


def _fields_of(headers: HeaderList) -> dict[bytes, bytes]:
    """Return header fields by name; several lines of a list are one (RFC 9110, 5.3)."""
    by_name = dict(headers)
    if len(by_name) != len(headers):
        for each in LISTS.intersection(by_name):
            by_name[each] = b", ".join([value for name, value in headers if name == each])
    return by_name


def _request_id(headers: dict[bytes, bytes]) -> str:
    """Return the caller's request id if it is well formed, else a new one."""
    given = headers.get(b"x-request-id")
    if given is not None and _REQUEST_ID.match(given):
        return given.decode()
    return f"{getrandbits(64):016x}"
