"""One request of a connection and its answer.

The cold routes are answered by the messages of ASGI. A whole answer, such as that of a hot route,
is one message of an extension: it is framed here and written at once. So both have the same guard,
and nothing of a connection's state is kept twice.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from api.http.exchange import AUTHENTICATED, WHOLE_ANSWER
from api.http.problems import KINDS, Problem, body_of, headers_of

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CLOSE: Final = (b"connection", b"close")
CONTROLS: Final = bytes({*range(32), 127} - {ord("\t")})
"""What no header may contain (RFC 9110 5.5): a line end, even a lone one, would begin another."""


class Cycle(RequestResponseCycle):
    """A request whose head is complete."""

    head_bytes = 0
    """What its head takes in memory."""

    @classmethod
    def of(cls, connection: HttpToolsProtocol, authenticated: Callable[[Hashable], None]) -> Self:
        """Return the request that a connection has just parsed.

        ``authenticated`` is called with the tenant whose request it is. Raises ValueError for a URL
        that is none.
        """
        url, version = httptools.parse_url(connection.url), connection.parser.get_http_version()
        path, scope = url.path.decode("ascii"), connection.scope
        scope["method"] = connection.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        extensions: dict[str, Any] = {AUTHENTICATED: authenticated, WHOLE_ANSWER: {}}
        scope["extensions"] = extensions
        return cls(
            scope=scope,
            transport=connection.transport,
            flow=connection.flow,
            logger=connection.logger,
            access_logger=connection.access_logger,
            access_log=False,
            default_headers=connection.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=connection.expect_100_continue,
            keep_alive=version != "1.0" and connection.parser.should_keep_alive(),
            on_response=connection.on_response_complete,
        )

    async def send(self, message: Any) -> None:
        """Take a message of ASGI or a whole answer; a client that has gone gets nothing.

        Raises ValueError if a header of a whole answer has a control character.
        """
        if message["type"] != WHOLE_ANSWER:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        headers, body = [*self.default_headers, *message["headers"]], message["body"]
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE)
        head = b"".join([b"%b: %b\r\n" % header for header in headers])
        if len(head) - len(head.translate(None, CONTROLS)) != 2 * len(headers):
            raise ValueError("a header has a control character")
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        length, shown = len(body), b"" if self.scope["method"] == "HEAD" else body
        self.transport.write(
            b"%bcontent-length: %d\r\n%b\r\n%b"
            % (STATUS_LINE[message["status"]], length, head, shown)
        )
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def closing_answer(slug: str) -> bytes:
    """Return the answer to what never became a request; nothing follows it."""
    problem = Problem(slug=slug, headers={"connection": "close"})
    request_id = secrets.token_hex(8)
    body = body_of(problem, request_id)
    fields = {
        **headers_of(problem),
        "x-request-id": request_id,
        "content-length": str(len(body)),
    }
    lines = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
    return f"HTTP/1.1 {problem.status} {KINDS[slug].title}\r\n{lines}\r\n".encode() + body
