"""One HTTP exchange: the request that passed the guard, its response, and a hot route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from api.http.problems import Problem, body_of, headers_of
from outbox.access import Caller, Scope

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

JSON: Final = (b"content-type", b"application/json")
AUTHENTICATED: Final = "outbox.authenticated"
"""The server's extension to call once the caller of a request is known."""
WHOLE_ANSWER: Final = "outbox.whole_answer"
"""The server's extension, and its message: status, headers but for the length, and the body."""


class HttpRequest(Struct, frozen=True, gc=False):
    """A request that passed the guard; ``body`` is complete and within its limit."""

    path: str
    headers: dict[bytes, bytes]
    body: bytes
    caller: Caller
    request_id: str

    def header(self, name: bytes) -> str | None:
        """Return a header's text; header bytes are Latin-1 (RFC 9110)."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class HttpResponse(Struct, frozen=True, gc=False):
    """A complete response."""

    status: int
    body: bytes
    headers: HeaderList


@dataclass(frozen=True, slots=True)
class HotRoute:
    """One hot route: its name in the metrics, its access scope and its handler."""

    template: str
    scope: Scope
    is_end: bool
    is_batch: bool
    serve: Callable[[HttpRequest], Awaitable[HttpResponse]]


class ResponseSender:
    """Sends one response with the request id; keeps the status for the metrics.

    ``at_once``: the server takes a whole response as one message.
    """

    def __init__(self, send: Send, request_id: str, *, at_once: bool) -> None:
        self._send = send
        self._at_once = at_once
        self.request_id = request_id
        self.status = 0
        self.extra_headers: HeaderList = []
        """Added to the response, whatever its status."""

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass an ASGI message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._own_headers()]
        await self._send(message)

    async def respond(self, response: HttpResponse) -> None:
        """Send a complete response."""
        headers, body = [*response.headers, *self._own_headers()], response.body
        self.status = status = response.status
        if self._at_once:
            whole = {"type": WHOLE_ANSWER, "status": status, "headers": headers, "body": body}
            await self._send(whole)
            return
        headers.append((b"content-length", str(len(body)).encode()))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _own_headers(self) -> HeaderList:
        return [*self.extra_headers, (b"x-request-id", self.request_id.encode())]

    async def problem(self, problem: Problem) -> None:
        """Send a problem document, unless a response has already started."""
        if self.status:
            return
        headers = [(name.encode(), text.encode()) for name, text in headers_of(problem).items()]
        body = body_of(problem, self.request_id)
        await self.respond(HttpResponse(problem.status, body, headers))


def entity_tag(body: bytes) -> str:
    """Return the ``ETag`` of a representation."""
    return f'"{sha256(body).hexdigest()[:32]}"'


def is_known(if_none_match: str | None, tag: str) -> bool:
    """Return True if the caller has what the tag stands for (RFC 9110 13.1.2)."""
    if if_none_match is None:
        return False
    known = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return "*" in known or tag in known
