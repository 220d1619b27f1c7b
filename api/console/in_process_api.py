"""The REST routes as the console calls them: in this process, in the name of the visitor.

The console has no access to the stores. What a visitor sees and does is what its key may see and
do over REST, with the same validation and the same refusals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from httpx2 import ASGITransport, InvalidURL, Request, Response

from api.http.exchange import App, AsgiScope, Receive, Send
from api.http.problems import Problem
from outbox.access import Caller

Query = Mapping[str, str | int]

HOST: Final = "http://api"
FIRST_REFUSAL: Final = 400
SHOWN_AS_THEY_ARE: Final = "/:@,*"


class Refused(Exception):
    """A route refused the call; ``problem`` is its problem document."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(problem["code"])
        self.status: int = problem["status"]
        self.problem = problem


class InProcessApi:
    """Calls the routes of an application as one caller; ``calls`` are shown on the page."""

    def __init__(self, app: App, caller: Caller, request_id: str, calls: list[str]) -> None:
        async def as_caller(scope: AsgiScope, receive: Receive, send: Send) -> None:
            scope["state"] = {"caller": caller, "request_id": request_id}
            await app(scope, receive, send)

        self._transport = ASGITransport(as_caller)
        self.calls = calls

    async def get(self, path: str, query: Query | None = None) -> Any:
        """Return the JSON of a GET. Raises Refused."""
        return (await self.fetch(path, query)).json()

    async def fetch(self, path: str, query: Query | None = None) -> Response:
        """Return the answer of a GET. Raises Refused."""
        return await self._call("GET", path, query)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of a POST. Raises Refused."""
        return (await self._call("POST", path, body=body)).json()

    async def delete(self, path: str, query: Query) -> None:
        """Send a DELETE. Raises Refused."""
        await self._call("DELETE", path, query)

    async def _call(
        self, method: str, path: str, query: Query | None = None, body: Any = None
    ) -> Response:
        asked = urlencode(query or {}, quote_via=quote, safe=SHOWN_AS_THEY_ARE)
        address = quote(path, safe=SHOWN_AS_THEY_ARE) + (f"?{asked}" if asked else "")
        self.calls.append(f"{method} {address}")
        try:
            request = Request(method, HOST + address, json=body)
        except InvalidURL:
            raise Problem(
                slug="invalid-request", detail="The address is too long: ask for less at a time."
            ) from None
        answer = await self._transport.handle_async_request(request)
        await answer.aread()
        if answer.status_code >= FIRST_REFUSAL:
            raise Refused(answer.json())
        return answer
