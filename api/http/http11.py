"""The server's protocol: HTTP/1.1, also for a client that offers HTTP/2 without TLS."""

from __future__ import annotations

import re
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER: Final = re.compile(rb"(?i)(?<=\r\n)upgrade(?=:[ \t]*h2c[ \t]*\r\n)")
IGNORED: Final = b"ignored"
"""A name of the same length. Only a head is changed: no JSON and no form has such a line."""


class Http11(HttpToolsProtocol):
    """Ignores the offer (RFC 9110, 7.8): the parser reads no body after it."""

    def data_received(self, data: bytes) -> None:
        """Take what came over the socket."""
        super().data_received(_OFFER.sub(IGNORED, data) if b"h2c" in data else data)
