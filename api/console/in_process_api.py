"""The REST routes as the console calls them: in this process, in the name of the visitor.

The console has no access to the stores. What a visitor sees and does is what its key may see and
do over REST, with the same validation and the same refusals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from api.http.exchange import AsgiScope, HeaderList, Receive, Send
from outbox.access import Caller

App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
Query = Mapping[str, str | int]

JSON_BODY: Final = (b"content-type", b"application/json")
FIRST_REFUSAL: Final = 400
SHOWN_AS_THEY_ARE: Final = "/:@,*"


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """The answer of a route."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the decoded body."""
        return msgspec.json.decode(self.body)


class Refused(Exception):
    """A route refused the call; ``problem`` is its problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(problem.get("code"))
        self.status = status
        self.problem = problem


def refusal(title: str, detail: str) -> Refused:
    """Return the refusal of a form or a search that the console does not understand."""
    return Refused(422, {"title": title, "detail": detail})


class CallCount:
    """How often one visit called the API."""

    def __init__(self) -> None:
        self.made = 0


class InProcessApi:
    """Calls the routes of an application as one caller; ``calls`` are shown on the page."""

    def __init__(self, app: App, caller: Caller, request_id: str, count: CallCount) -> None:
        self._app = app
        self._caller = caller
        self._request_id = request_id
        self._count = count
        self.calls: list[str] = []

    async def get(self, path: str, query: Query | None = None) -> Any:
        """Return the JSON of a GET. Raises Refused."""
        return (await self.fetch(path, query)).json()

    async def fetch(self, path: str, query: Query | None = None) -> ApiAnswer:
        """Return the answer of a GET. Raises Refused."""
        return await self._call("GET", path, query, None)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of a POST. Raises Refused."""
        encoded = b"" if body is None else msgspec.json.encode(body)
        return (await self._call("POST", path, None, encoded)).json()

    async def delete(self, path: str, query: Query) -> None:
        """Send a DELETE. Raises Refused."""
        await self._call("DELETE", path, query, None)

    async def _call(
        self, method: str, path: str, query: Query | None, body: bytes | None
    ) -> ApiAnswer:
        asked = urlencode(query or {}, quote_via=quote, safe=SHOWN_AS_THEY_ARE)
        shown = quote(path, safe=SHOWN_AS_THEY_ARE)
        self.calls.append(f"{method} {shown}{'?' if asked else ''}{asked}")
        self._count.made += 1
        answer = await self._exchange(method, path, asked, body)
        if answer.status >= FIRST_REFUSAL:
            raise Refused(answer.status, answer.json())
        return answer

    async def _exchange(self, method: str, path: str, query: str, body: bytes | None) -> ApiAnswer:
        start: MutableMapping[str, Any] = {}
        parts: list[bytes] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._app(self._scope(method, path, query, body), receive, send)
        headers = {name.decode(): text.decode("latin-1") for name, text in start["headers"]}
        return ApiAnswer(start["status"], headers, b"".join(parts))

    def _scope(self, method: str, path: str, query: str, body: bytes | None) -> AsgiScope:
        length = (b"content-length", str(len(body or b"")).encode())
        headers: HeaderList = [JSON_BODY, length] if body else []
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "raw_path": quote(path, safe=SHOWN_AS_THEY_ARE).encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": headers,
            "client": None,
            "server": None,
            "state": {"caller": self._caller, "request_id": self._request_id},
        }
