"""Asks a producer group over HTTP: one call, one deadline, one answer; silence never decides.

Redirects are not followed, nothing is decompressed, no cookie is kept, no proxy is read from the
environment, and the size of answers is limited. Every connection passes the SSRF guard.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Final, Self

import aiohttp

from outbox.checks.check_round import Answer, Outcome
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import QueueRow
from outbox.checks.ssrf_guard import CheckUrl, read_check_url
from outbox.errors import CheckUrlForbidden
from outbox.http_checks.classification import HttpAnswer, classify, classify_batch
from outbox.http_checks.guarded_connector import Blocked, GuardedResolver, guarded_connector
from outbox.http_checks.request import CheckRequest, check_request

CONNECT_SECONDS: Final = 2.0
ANSWER_BYTES: Final = 16 * 1024
BATCH_ANSWER_BYTES: Final = 64 * 1024
HEADER_BYTES: Final = 16 * 1024
HEADER_COUNT: Final = 64
READ_BYTES: Final = 4096


class HttpCheckEndpoint:
    """The CheckEndpoint over HTTP; use it as an async context manager."""

    def __init__(self, resolver: GuardedResolver, *, proxy_url: str | None = None) -> None:
        """Create an endpoint; a proxy applies its own rules to addresses."""
        self._proxy_url = proxy_url
        self._resolver = resolver
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True)
            if proxy_url
            else guarded_connector(resolver),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            max_line_size=HEADER_BYTES // 2,
            max_field_size=HEADER_BYTES // 2,
            max_headers=HEADER_COUNT,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def ask(
        self, group: ProducerGroup, rows: Sequence[QueueRow], now: datetime
    ) -> Sequence[Answer]:
        """Make one call and answer for each row in order; see CheckEndpoint.ask."""
        request = check_request(group, rows, now, secrets.token_hex(16))
        returned = await self.call(group, request)
        if isinstance(returned, Answer):
            return [returned] * len(rows)
        ids = [str(row.readable.message_id) for row in rows]
        if group.batch_check:
            return classify_batch(returned, ids)
        return [classify(returned, ids[0])]

    async def call(self, group: ProducerGroup, request: CheckRequest) -> HttpAnswer | Answer:
        """Return the complete answer, or the reason why there is none."""
        limit = BATCH_ANSWER_BYTES if group.batch_check else ANSWER_BYTES
        try:
            url = read_check_url(group.check_url, self._resolver.policy)
            async with asyncio.timeout(group.check_timeout_seconds):
                self._resolver.aim(url, group.id)
                return await self._post(group.check_url, url, request, limit)
        except CheckUrlForbidden as refused:
            return Answer(outcome=Outcome.BLOCKED, error=refused.rule)
        except Blocked as blocked:
            return Answer(outcome=Outcome.BLOCKED, error=blocked.rule.value)
        except TimeoutError:
            return Answer(outcome=Outcome.TIMEOUT, error="timeout")
        except (aiohttp.ClientError, OSError) as error:
            _forget_frames(error)
            return Answer(outcome=Outcome.UNREACHABLE, error=type(error).__name__)

    async def _post(
        self, check_url: str, url: CheckUrl, request: CheckRequest, limit: int
    ) -> HttpAnswer:
        if self._proxy_url is not None:
            await self._resolver.resolve(url.host, url.port)
        async with self._session.post(
            check_url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
            proxy=self._proxy_url,
        ) as response:
            body = await _read(response, limit) if response.status == 200 else None
            if body is None:
                response.close()
            return HttpAnswer(
                status=response.status,
                content_type=response.headers.get("Content-Type", ""),
                content_encoding=response.headers.get("Content-Encoding", ""),
                retry_after=response.headers.get("Retry-After"),
                date=response.headers.get("Date"),
                body=body,
            )


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
