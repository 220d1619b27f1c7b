"""An HTTP exchange that is limited as a whole; the HTTP library limits each wait for bytes only.

The library passes the timeout of a request to each wait. Here that timeout is a moment
(``time.monotonic``): the end of the whole exchange.
"""

from collections.abc import Iterable
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from time import monotonic
from typing import Any, Final

import httpcore2
import httpx2

ANSWER_MAX_BYTES: Final = 64 * 1024 * 1024
WRITE_BYTES: Final = 65_536


def limited_client(url: str, headers: dict[str, str]) -> httpx2.Client:
    """Return a client of one service. Raises httpx2.InvalidURL."""
    # Without TLS no certificate is looked at; the library reads all trusted ones first, for 50 ms.
    trusted: SSLContext | bool = (
        SSLContext(PROTOCOL_TLS_CLIENT) if url.startswith("http://") else True
    )
    transport = httpx2.HTTPTransport(trust_env=False, verify=trusted)
    pool: Any = transport._pool
    pool._network_backend = _Backend(pool._network_backend)
    plain = {"accept-encoding": "identity"}  # a few bytes could become more than the memory
    return httpx2.Client(
        base_url=url, headers={**headers, **plain}, transport=transport, trust_env=False
    )


def exchange(http: httpx2.Client, seconds: float, **request: Any) -> tuple[httpx2.Response, bytes]:
    """Return the answer and its body, both within ``seconds``.

    Raises httpx2.TransportError; httpx2.TimeoutException is one. Also for a body that is too long.
    """
    timeout = httpx2.Timeout(monotonic() + seconds, pool=seconds)
    body = bytearray()
    with http.stream(timeout=timeout, **request) as response:
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > ANSWER_MAX_BYTES:
                raise httpx2.RemoteProtocolError(f"more than {ANSWER_MAX_BYTES} bytes")
    return response, bytes(body)


def _left(end: float | None, error: type[Exception]) -> float | None:
    """Return the seconds until the end of the exchange; raises ``error`` if it is over."""
    if end is None:
        return None
    left = end - monotonic()
    if left <= 0:
        raise error("the exchange took too long")
    return left


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        wait = _left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._backend.connect_tcp(host, port, wait, local_address, socket_options))


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for place in range(0, len(buffer), WRITE_BYTES):
            wait = _left(timeout, httpcore2.WriteTimeout)
            self._stream.write(buffer[place : place + WRITE_BYTES], wait)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        wait = _left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, wait))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
