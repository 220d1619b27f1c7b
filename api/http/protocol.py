"""The server's HTTP/1.1 protocol, bounded: bytes of a head, and the time a request may take.

The guard judges complete requests; this judges what never becomes one. A request that arrives whole
costs no timer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.http.problems import KINDS, MEDIA_TYPE, Problem, body_of

HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 30.0
HEAD_MAX_BYTES: Final = 65_536
"""URL and headers together; smaller excesses get the guard's precise answer."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose request is endless or does not end in time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._unread_bytes = 0
        self._in_head = True
        self._in_body = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a connection that sends nothing is not kept for ever."""
        super().connection_made(transport)
        self._watch(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head has grown beyond its bound; time what is incomplete."""
        super().data_received(data)
        self._unread_bytes = self._unread_bytes + len(data) if self._in_head else 0
        if self._head_bytes > HEAD_MAX_BYTES or self._unread_bytes > HEAD_MAX_BYTES:
            self._refuse("headers-too-large")
        elif (self._in_head or self._in_body) and self._deadline is None:
            self._watch(HEADER_SECONDS if self._in_head else BODY_SECONDS)

    def on_message_begin(self) -> None:
        """Begin to count a head."""
        super().on_message_begin()
        self._head_bytes = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Count the URL."""
        self._head_bytes += len(url)
        if self._head_bytes <= HEAD_MAX_BYTES:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; those beyond the bound are not kept."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes <= HEAD_MAX_BYTES:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End a head; one beyond its bound never becomes a request."""
        self._stop_clock()
        self._in_head = False
        if self._head_bytes <= HEAD_MAX_BYTES:
            self._in_body = True
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take body bytes of a request that was accepted."""
        if self._in_body:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request that was accepted."""
        self._stop_clock()
        if self._in_body:
            self._in_body = False
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, in our form."""
        self._refuse("malformed-request")

    def _refuse(self, slug: str) -> None:
        """Answer by ourselves where no answer has begun, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write(_whole_answer(slug))
        self.transport.close()

    def _watch(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._refuse, "request-timeout")

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _whole_answer(slug: str) -> bytes:
    kind = KINDS[slug]
    body = body_of(Problem(slug=slug), "none")
    head = (
        f"HTTP/1.1 {kind.status} {kind.title}\r\ncontent-type: {MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
