"""One HTTP exchange over a shared connection pool: limited in time and size, no redirects."""

from time import monotonic

import httpx2

from outbox_client.errors import BadAnswer, ServiceUnreachable
from outbox_client.protocol import Answer, Request

ANSWER_MAX_BYTES = 16 * 1024 * 1024
CONNECTIONS_MAX = 100
CONNECT_SECONDS = 2.0
USER_AGENT = "outbox-client/0.1"


class Transport:
    """Sends requests to one service; may be shared by any number of threads.

    Proxies of the environment are not used: an API key is sent only to the service.
    """

    def __init__(self, url: str, api_key: str | None) -> None:
        headers = {"user-agent": USER_AGENT, "content-type": "application/json"}
        if api_key is not None:
            headers["authorization"] = f"Bearer {api_key}"
        self._http = httpx2.Client(
            base_url=url,
            headers=headers,
            trust_env=False,
            follow_redirects=False,
            limits=httpx2.Limits(
                max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX
            ),
        )

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def exchange(self, request: Request, timeout_seconds: float) -> Answer:
        """Send ``request`` once; raises ``ServiceUnreachable`` without a complete answer in time.

        Raises ``BadAnswer`` for an unreadable answer. After ``close`` every call raises.
        """
        if self._http.is_closed:
            raise ServiceUnreachable("the producer is closed")
        deadline = monotonic() + timeout_seconds
        timeout = httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
        try:
            with self._http.stream(
                "POST",
                request.path,
                content=request.body,
                headers=dict(request.headers),
                timeout=timeout,
            ) as response:
                body = _body(response, deadline)
        except httpx2.TransportError as error:
            raise ServiceUnreachable(f"{type(error).__name__}: {error}") from error
        except httpx2.DecodingError as error:
            raise BadAnswer(f"the answer's content-encoding is not valid: {error}") from error
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status_code, headers=headers, body=body)


def _body(response: httpx2.Response, deadline: float) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > ANSWER_MAX_BYTES:
            raise BadAnswer(f"the answer is longer than {ANSWER_MAX_BYTES} bytes")
        if monotonic() > deadline:
            raise ServiceUnreachable("the answer did not end in time")
    return bytes(body)
