"""One HTTP exchange over a shared connection pool: limited in time and size, no redirects."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import httpx2

from outbox_client.calls.protocol import Answer, Request
from outbox_client.calls.time_limit import LimitedTransport, TimeLimit
from outbox_client.errors import BadAnswer, ServiceUnreachable

ANSWER_MAX_BYTES = 16 * 1024 * 1024
CONNECTIONS_MAX = 100
CONNECT_SECONDS = 2.0
PORT_MAX = 65_535
USER_AGENT = "outbox-client/0.1"
IDENTITY = "identity"
"""Nothing is decompressed: a few bytes could become more than the memory."""
_VISIBLE = re.compile(r"[!-~]*")


class Transport:
    """Sends requests to one service; may be shared by any number of threads.

    Proxies of the environment are not used: an API key is sent only to the service.
    """

    def __init__(self, url: str, api_key: str | None) -> None:
        options = client_options(url, api_key)
        self._limit = TimeLimit()
        transport = LimitedTransport(self._limit, trust_env=False, limits=options["limits"])
        self._http = httpx2.Client(**options, transport=transport)

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def exchange(self, request: Request, timeout_seconds: float) -> Answer:
        """Send ``request`` once; raises ``ServiceUnreachable`` without a complete answer in time.

        Raises ``BadAnswer`` for an unreadable answer. After ``close`` every call raises.
        """
        if self._http.is_closed:
            raise ServiceUnreachable("the producer is closed")
        body = AnswerBody(timeout_seconds)
        with (
            one_kind_of_error(),
            self._limit.of(timeout_seconds),
            self._http.stream("POST", **request_options(request, timeout_seconds)) as response,
        ):
            for chunk in response.iter_raw():
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

    def answer(self, response: httpx2.Response) -> Answer:
        """Return the complete answer; raises ``BadAnswer`` for one that is compressed."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        if headers.get("content-encoding", IDENTITY) != IDENTITY:
            raise BadAnswer("the answer has a content-encoding, which was not asked for")
        return Answer(status=response.status_code, headers=headers, body=bytes(self._received))


def client_options(url: str, api_key: str | None) -> dict[str, Any]:
    """Return the options of an HTTP client for one service; raises ValueError."""
    _refuse_useless(url)
    headers = {
        "user-agent": USER_AGENT,
        "content-type": "application/json",
        "accept-encoding": IDENTITY,
    }
    if api_key is not None:
        if not _VISIBLE.fullmatch(api_key):
            raise ValueError("api_key has a space, a line end or a letter that no key has")
        headers["authorization"] = f"Bearer {api_key}"
    limits = httpx2.Limits(
        max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX
    )
    return {
        "base_url": url,
        "headers": headers,
        "trust_env": False,
        "follow_redirects": False,
        "limits": limits,
    }


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


def request_options(request: Request, timeout_seconds: float) -> dict[str, Any]:
    """Return the options of one exchange."""
    connect = min(CONNECT_SECONDS, timeout_seconds)
    return {
        "url": request.path,
        "content": request.body,
        "headers": dict(request.headers),
        "timeout": httpx2.Timeout(timeout_seconds, connect=connect),
    }


@contextmanager
def one_kind_of_error() -> Iterator[None]:
    """Raise the errors of the HTTP library as errors of this one."""
    try:
        yield
    except httpx2.TransportError as error:
        raise ServiceUnreachable(f"{type(error).__name__}: {error}") from error
