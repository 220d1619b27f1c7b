"""The server's HTTP/1.1 protocol with limits: bytes of a head, and the time a request may take.

The guard checks complete requests; this class stops requests that never become complete. A request
that arrives in one piece needs no timer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.http.problems import KINDS, MEDIA_TYPE, Problem, body_of

HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 30.0
HEAD_MAX_BYTES: Final = 65_536
"""URL and headers together; a smaller excess gets the guard's precise problem."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose request is too large or does not end in time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._unread_bytes = 0
        self._in_head = True
        self._in_body = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer, so that a connection without data is closed."""
        super().connection_made(transport)
        self._start_timer(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on unless the head is above its limit; start a timer for an incomplete request."""
        super().data_received(data)
        self._unread_bytes = self._unread_bytes + len(data) if self._in_head else 0
        if self._head_bytes > HEAD_MAX_BYTES or self._unread_bytes > HEAD_MAX_BYTES:
            self._refuse("headers-too-large")
        elif (self._in_head or self._in_body) and self._deadline is None:
            self._start_timer(HEADER_SECONDS if self._in_head else BODY_SECONDS)

    def on_message_begin(self) -> None:
        """Start to count the bytes of a head."""
        super().on_message_begin()
        self._head_bytes = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Count the URL."""
        self._head_bytes += len(url)
        if self._head_bytes <= HEAD_MAX_BYTES:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; headers above the limit are dropped."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes <= HEAD_MAX_BYTES:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End a head; a head above its limit never becomes a request."""
        self._stop_timer()
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
        self._stop_timer()
        if self._in_body:
            self._in_body = False
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with a problem document."""
        self._refuse("malformed-request")

    def _refuse(self, slug: str) -> None:
        """Send a problem if no response has started, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write(_response(slug))
        self.transport.close()

    def _start_timer(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._refuse, "request-timeout")

    def _stop_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _response(slug: str) -> bytes:
    kind = KINDS[slug]
    body = body_of(Problem(slug=slug), "none")
    head = (
        f"HTTP/1.1 {kind.status} {kind.title}\r\ncontent-type: {MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
