"""A time limit of a whole exchange; the HTTP library itself limits each wait for a few bytes only.

Without it a server, or something between, that sends a byte now and then would hold a caller for
ever.
"""

import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import httpcore2

WRITE_BYTES = 65_536


class TimeLimit(threading.local):
    """When the exchange of this thread has to end."""

    ends_at = float("inf")

    @contextmanager
    def of(self, seconds: float) -> Iterator[None]:
        """Limit the exchanges of this thread in a block."""
        self.ends_at = monotonic() + seconds
        try:
            yield
        finally:
            self.ends_at = float("inf")

    def left(self, timeout: float | None, error: type[Exception]) -> float | None:
        """Return the time that one wait may take; raises ``error`` if none is left."""
        left = self.ends_at - monotonic()
        if left <= 0:
            raise error("the exchange took too long")
        waits = [each for each in (timeout, left) if each is not None and each != float("inf")]
        return min(waits, default=None)


class LimitedBackend(httpcore2.NetworkBackend):
    """Opens connections that end an exchange at its time limit."""

    def __init__(self, limit: TimeLimit, backend: httpcore2.NetworkBackend | None = None) -> None:
        self._backend = backend or httpcore2.SyncBackend()
        self._limit = limit

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        wait = self._limit.left(timeout, httpcore2.ConnectTimeout)
        stream = self._backend.connect_tcp(host, port, wait, local_address, socket_options)
        return _Stream(stream, self._limit)


class _Stream(httpcore2.NetworkStream):
    """Sends what was written when the answer is read, so that head and body travel together."""

    def __init__(self, stream: httpcore2.NetworkStream, limit: TimeLimit) -> None:
        self._stream = stream
        self._limit = limit
        self._unsent = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with suppress(httpcore2.WriteError):  # the server may have answered before it closed
            self._send(timeout)
        return self._stream.read(max_bytes, self._limit.left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent += buffer

    def _send(self, timeout: float | None) -> None:
        unsent, self._unsent = self._unsent, b""
        for place in range(0, len(unsent), WRITE_BYTES):
            wait = self._limit.left(timeout, httpcore2.WriteTimeout)
            self._stream.write(unsent[place : place + WRITE_BYTES], wait)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        wait = self._limit.left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, wait), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
