"""Asks a producer group over HTTP: one call, one deadline, one answer; silence never decides.

Redirects are not followed, nothing is decompressed, no cookie is kept, no proxy is read from the
environment, and the size of answers is limited. Every connection passes the SSRF guard.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import aiohttp
from yarl import URL

from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.check_round import QueueRow
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.ssrf_guard import SsrfPolicy, policy_of, read_check_url
from outbox.errors import CheckUrlForbidden
from outbox.http_checks.classification import classify
from outbox.http_checks.guard import Guard
from outbox.http_checks.request import CheckRequest, check_request
from outbox.settings.catalogue import Settings

CONNECT_SECONDS: Final = 2.0
ANSWER_BYTES: Final = 16 * 1024
BATCH_ANSWER_BYTES: Final = 64 * 1024
HEADER_BYTES: Final = 16 * 1024
READ_BYTES: Final = 4096
UNTRUSTED: Final = "certificate not trusted"
"""The error of an endpoint whose certificate is of an unknown authority, for another name, or old.
"""


class HttpCheckEndpoint:
    """The CheckEndpoint over HTTP; each call has a connection of its own.

    In a second call of a connection, an unsolicited answer would count as the answer to another
    check (I14).
    """

    def __init__(self, policy: SsrfPolicy, *, proxy_url: str | None = None) -> None:
        """Create an endpoint; a proxy applies its own rules to addresses."""
        self.policy = policy
        self._proxy_url = proxy_url

    async def ask(
        self, group: ProducerGroup, rows: Sequence[QueueRow], now: datetime
    ) -> Sequence[CheckAnswer]:
        """Make one call and answer for each row in order; see CheckEndpoint.ask."""
        return await self.call(group, check_request(group, rows, now, secrets.token_hex(16)))

    async def call(self, group: ProducerGroup, request: CheckRequest) -> Sequence[CheckAnswer]:
        """Send a request and return the answer about each of its messages."""
        try:
            async with asyncio.timeout(group.check_timeout_seconds):
                return await self._post(group.check_url, request)
        except CheckUrlForbidden as refused:
            failed = CheckAnswer(outcome=Outcome.BLOCKED, error=refused.rule)
        except TimeoutError:
            failed = CheckAnswer(outcome=Outcome.TIMEOUT, error="timeout")
        except (aiohttp.ClientError, OSError) as error:
            _forget_frames(error)
            untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
            failed = CheckAnswer(
                outcome=Outcome.UNREACHABLE, error=UNTRUSTED if untrusted else type(error).__name__
            )
        return [failed] * len(request.message_ids)

    async def _post(self, check_url: str, request: CheckRequest) -> Sequence[CheckAnswer]:
        guard = Guard(read_check_url(check_url, self.policy), self.policy)
        if self._proxy_url is not None:
            await guard.judge_all()
        async with (
            self._session(guard) as session,
            session.post(
                URL(check_url, encoded=True),
                data=request.body,
                headers=request.headers,
                allow_redirects=False,
                proxy=self._proxy_url,
            ) as response,
        ):
            limit = BATCH_ANSWER_BYTES if request.batch else ANSWER_BYTES
            body = await _read(response, limit) if response.status == 200 else None
            return classify(response.status, response.headers, body, request)

    def _session(self, guard: Guard) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector() if self._proxy_url else guard.connector(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        )


def endpoint_of(settings: Settings) -> HttpCheckEndpoint:
    """Return the endpoint of an installation. Raises ConfigurationError."""
    proxy = settings.check_proxy_url
    policy = policy_of(
        settings.check_allow_cidrs, settings.check_allow_hosts, settings.check_allow_ports
    )
    return HttpCheckEndpoint(policy, proxy_url=proxy.get_secret_value() if proxy else None)


def _forget_frames(error: BaseException | None) -> None:
    """Remove the traceback from an error of a call.

    The frames refer to the connection with all received data, and the connection refers to the
    error. Such a cycle stays until Python's cycle collector runs, which the relay makes rare.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """Return the whole body, or None if body or headers exceed their limits."""
    if sum(len(name) + len(value) for name, value in response.raw_headers) > HEADER_BYTES:
        return None
    body = bytearray()
    async for chunk in response.content.iter_chunked(READ_BYTES):
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)
