"""The server's protocol: HTTP/1.1, also for a client that offers HTTP/2 without TLS."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER: Final = re.compile(rb"(?i)(?<=\r\n)upgrade(?=:[ \t]*h2c[ \t]*\r\n)")
IGNORED: Final = b"ignored"
"""A name of the same length. Only a head is changed: no JSON and no form has such a line."""


class Http11(HttpToolsProtocol):
    """Ignores the offer (RFC 9110, 7.8): the parser reads no body after it."""

    def connection_made(self, transport: Any) -> None:
        """Take a new connection."""
        super().connection_made(JoinedWrites(transport))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Take what came over the socket."""
        super().data_received(_OFFER.sub(IGNORED, data) if b"h2c" in data else data)


class JoinedWrites:
    """A transport that sends what is written in one turn of the loop with one system call.

    The server writes the head of a response and its body separately, and uvloop sends each of them.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._call_soon = asyncio.get_running_loop().call_soon
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send this at the end of the turn."""
        if not self._parts:
            self._call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Close the connection once all is sent."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts and not self._transport.is_closing():
            self._transport.write(b"".join(self._parts))
        self._parts.clear()
