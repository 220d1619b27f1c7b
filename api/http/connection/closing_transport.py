"""A transport whose close is decided by the protocol; everything else is the server's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class ClosingTransport:
    """Passes everything on, except ``close``, which calls ``finish`` once."""

    def __init__(self, transport: asyncio.Transport, finish: Callable[[], None]) -> None:
        self._transport = transport
        self._finish = finish
        self._closing = False
        self.write = transport.write
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.get_extra_info: Callable[..., Any] = transport.get_extra_info

    def is_closing(self) -> bool:
        """Return True once the connection is to end."""
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """End the connection in the protocol's way."""
        if not self.is_closing():
            self._closing = True
            self._finish()

    def release(self) -> None:
        """Refer to the protocol no more, because the connection has ended."""
        self._closing = True
        del self._finish
