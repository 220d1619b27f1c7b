"""One HTTP exchange as the service sees it: what was asked, and what is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from api.http.problems import Problem, body_of, headers_of
from outbox.access import Caller

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

JSON: Final = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Exchange:
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


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    headers: HeaderList


class Reply:
    """Sends one answer and puts the request id on it; remembers the status for the metrics."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = 0
        self.fields: HeaderList = []
        """Further header fields of the answer, whatever it is."""

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass an ASGI message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                *self.fields,
                (b"x-request-id", self.request_id.encode()),
            ]
        await self._send(message)

    async def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        length = (b"content-length", str(len(answer.body)).encode())
        head = {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [*answer.headers, length],
        }
        await self.send(head)
        await self._send({"type": "http.response.body", "body": answer.body})

    async def problem(self, problem: Problem) -> None:
        """Send a problem document, unless an answer has begun already."""
        if self.status:
            return
        headers = [(name.encode(), text.encode()) for name, text in headers_of(problem).items()]
        await self.answer(Answer(problem.status, body_of(problem, self.request_id), headers))
