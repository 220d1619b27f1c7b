"""One HTTP exchange over a shared connection pool: limited in time and size, no redirects."""

import re
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import httpcore2
import httpx2

from outbox_client.calls.protocol import Answer, Request
from outbox_client.calls.time_limit import LimitedBackend, TimeLimit
from outbox_client.errors import BadAnswer, ServiceUnreachable

ANSWER_MAX_BYTES = 16 * 1024 * 1024
CONNECTIONS_MAX = 100
CONNECT_SECONDS = 2.0
KEEPALIVE_SECONDS = 5.0
PORT_MAX = 65_535
USER_AGENT = b"outbox-client/0.1"
IDENTITY = "identity"
"""Nothing is decompressed: a few bytes could become more than the memory."""
LIBRARY_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)
_VISIBLE = re.compile(r"[!-~]*")


class Transport:
    """Sends requests to one service; may be shared by any number of threads.

    Requests that wait for Kafka have connections of their own: while it is down they would occupy
    all of them.

    Proxies of the environment are not used: an API key is sent only to the service. Connections,
    encryption and the reading of answers are the HTTP library's; its larger interface, which builds
    and merges a request from many parts, would cost as much again.
    """

    def __init__(
        self, url: str, api_key: str | None, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._service = Service(url, api_key)
        self._limit = TimeLimit()
        options = pool_options(ssl_context) | {"network_backend": LimitedBackend(self._limit)}
        self._pool = httpcore2.ConnectionPool(**options)
        self._pool_of_waits = httpcore2.ConnectionPool(**options)
        self._is_closed = False

    def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        self._pool.close()
        self._pool_of_waits.close()

    def exchange(self, request: Request, timeout_seconds: float) -> Answer:
        """Send ``request`` once; raises ``ServiceUnreachable`` without a complete answer in time.

        Raises ``BadAnswer`` for an unreadable answer. After ``close`` every call raises.
        """
        if self._is_closed:
            raise ServiceUnreachable("the producer is closed")
        body = AnswerBody(timeout_seconds)
        options = self._service.options(request, timeout_seconds)
        pool = self._pool_of_waits if request.waits else self._pool
        with (
            one_kind_of_error(),
            self._limit.of(timeout_seconds),
            pool.stream("POST", **options) as response,
        ):
            for chunk in response.iter_stream():
                body.add(chunk)
        return body.answer(response)


class AnswerBody:
    """The body of one answer: limited in size, and complete within ``timeout_seconds``."""

    def __init__(self, timeout_seconds: float) -> None:
        self._deadline = monotonic() + timeout_seconds
        self._received = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append a part; raises ``BadAnswer`` (too long) or ``ServiceUnreachable`` (too late)."""
        self._received += chunk
        if len(self._received) > ANSWER_MAX_BYTES:
            raise BadAnswer(f"the answer is longer than {ANSWER_MAX_BYTES} bytes")
        if monotonic() > self._deadline:
            raise ServiceUnreachable("the answer did not end in time")

    def answer(self, response: httpcore2.Response) -> Answer:
        """Return the complete answer; raises ``BadAnswer`` for one that is compressed."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        if headers.get("content-encoding", IDENTITY) != IDENTITY:
            raise BadAnswer("the answer has a content-encoding, which was not asked for")
        return Answer(status=response.status, headers=headers, body=bytes(self._received))


class Service:
    """The address of a service, and the headers that every request has. Raises ValueError."""

    def __init__(self, url: str, api_key: str | None) -> None:
        _refuse_useless(url)
        self._url = httpx2.URL(url)
        self._path = self._url.raw_path.rstrip(b"/")
        self._headers = [
            (b"User-Agent", USER_AGENT),
            (b"Content-Type", b"application/json"),
            (b"Accept-Encoding", IDENTITY.encode()),
        ]
        authorization = _authorization(self._url, api_key)
        if authorization is not None:
            self._headers.append((b"Authorization", authorization))

    def options(self, request: Request, timeout_seconds: float) -> dict[str, Any]:
        """Return the options of one exchange."""
        connect = min(CONNECT_SECONDS, timeout_seconds)
        own = [(name.encode(), value.encode()) for name, value in request.headers.items()]
        waits = dict.fromkeys(("read", "write", "pool"), timeout_seconds)
        return {
            "url": httpcore2.URL(
                scheme=self._url.raw_scheme,
                host=self._url.raw_host,
                port=self._url.port,
                target=self._path + request.path.encode(),
            ),
            "content": request.body,
            "headers": self._headers + own,
            "extensions": {"timeout": {"connect": connect, **waits}},
        }


def pool_options(ssl_context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return the options of the connections to one service; None trusts the public authorities."""
    return {
        "ssl_context": ssl_context or httpx2.create_ssl_context(trust_env=False),
        "max_connections": CONNECTIONS_MAX,
        "max_keepalive_connections": CONNECTIONS_MAX,
        "keepalive_expiry": KEEPALIVE_SECONDS,
    }


def _authorization(url: httpx2.URL, api_key: str | None) -> bytes | None:
    """Return the credentials of the URL, else the key; raises ValueError."""
    if api_key is not None and not _VISIBLE.fullmatch(api_key):
        raise ValueError("api_key has a space, a line end or a letter that no key has")
    if url.username or url.password:
        return b"Basic " + b64encode(f"{url.username}:{url.password}".encode())
    return None if api_key is None else f"Bearer {api_key}".encode()


def _refuse_useless(url: str) -> None:
    """Raise ValueError for an address that no attempt would reach."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if not (parsed.scheme in ("http", "https") and parsed.host and _is_port(parsed.port)):
        raise ValueError("url must look like http://127.0.0.1:8080")


def _is_port(port: int | None) -> bool:
    return port is None or 0 < port <= PORT_MAX


@contextmanager
def one_kind_of_error() -> Iterator[None]:
    """Raise the errors of the HTTP library as errors of this one."""
    try:
        yield
    except LIBRARY_ERRORS as error:
        raise ServiceUnreachable(f"{type(error).__name__}: {error}") from error
