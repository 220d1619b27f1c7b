"""AUTH_MODE=keys: API keys, verified rarely.

A verified key is remembered for seconds, so a busy producer rarely costs a query; a key that is
revoked or expires stops working everywhere within that time. A token without our checksum costs no
query at all. One query at a time verifies all tokens that came during the last one.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from api.http.problems import Problem
from outbox.access import ApiKey, Caller, caller_of
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from outbox.postgres.operators.api_keys import PostgresApiKeys

CACHE_SECONDS: Final = 5.0
CACHE_MAX: Final = 10_000
"""Most keys that are remembered; then the oldest one goes."""
WAIT_SECONDS: Final = 5.0
"""Longest wait for a verification."""
QUERY_MAX: Final = 500
"""Most tokens of one query."""
_CHALLENGE: Final = {"www-authenticate": "Bearer"}

Verified = tuple[float, ApiKey | None]
"""When the query began, and the key as it was then."""


class KeyAuthenticator:
    """Reads ``Authorization: Bearer obx_…``; every spelling of a header is the same token."""

    def __init__(self, keys: PostgresApiKeys, clock: Clock, *, cache_max: int = CACHE_MAX) -> None:
        self._keys = keys
        self._clock = clock
        self._cache_max = cache_max
        self._known: dict[str, tuple[float, Caller | None]] = {}
        """When each token was verified, and its caller; None: it was refused."""
        self._next: dict[str, asyncio.Future[Verified]] = {}
        self._begun: dict[str, asyncio.Future[Verified]] = {}
        """What the query of now asks about, as long as newcomers may share it."""
        self._running: asyncio.Task[None] | None = None
        self._revocations = 0

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse nothing: only the key counts."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller whose key this is; raises Problem and DatabaseUnavailable."""
        token = _token_of(authorization)
        at, caller = self._known.get(token, (float("-inf"), None))
        if at <= self._clock.monotonic() - CACHE_SECONDS:
            if not self._keys.is_issued(token):
                raise _unauthenticated()
            caller = await self._verify(token)
        if caller is None:
            raise _unauthenticated()
        return caller

    def forget(self, key_id: str) -> None:
        """Verify this key again at its next use, because this process revoked it."""
        self._revocations += 1
        self._begun = {}
        found = [each for each, (_, key) in self._known.items() if key and key.key_id == key_id]
        for token in found:
            del self._known[token]

    async def _verify(self, token: str) -> Caller | None:
        before = self._revocations
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                began, key = await asyncio.shield(self._asked(token))
        except TimeoutError:
            raise _too_slow() from None
        if self._clock.monotonic() - began >= CACHE_SECONDS:
            raise _too_slow()  # the key may have ended since the query began
        caller = None if key is None else caller_of(key)
        if before == self._revocations:
            self._remember(token, began, caller)
        return caller

    def _remember(self, token: str, began: float, caller: Caller | None) -> None:
        self._known.pop(token, None)
        self._known[token] = (began, caller)
        if len(self._known) > self._cache_max:
            del self._known[next(iter(self._known))]

    def _asked(self, token: str) -> asyncio.Future[Verified]:
        """Return what the running query or the next one finds."""
        asked = self._begun.get(token) or self._next.get(token)
        if asked is None:
            asked = self._next[token] = asyncio.get_running_loop().create_future()
            if self._running is None:
                self._running = asyncio.create_task(self._run())
        return asked

    async def _run(self) -> None:
        try:
            while self._next:
                asked = dict(islice(self._next.items(), QUERY_MAX))
                for token in asked:
                    del self._next[token]
                self._begun = dict(asked)
                await self._query(asked)
        finally:
            self._running = None

    async def _query(self, asked: dict[str, asyncio.Future[Verified]]) -> None:
        began = self._clock.monotonic()
        try:
            keys = await self._keys.verify([*asked])
        except Exception as error:  # whoever waits raises it; the next query goes on
            for each in asked.values():
                each.set_exception(error)
                each.exception()  # everybody who waited may be gone
        else:
            for each, key in zip(asked.values(), keys, strict=True):
                each.set_result((began, key))
        finally:
            self._begun = {}


def _token_of(authorization: bytes | None) -> str:
    scheme, _, token = (authorization or b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.isascii():
        raise _unauthenticated()
    return token.strip().decode()


def _too_slow() -> DatabaseUnavailable:
    return DatabaseUnavailable("the verification of a key takes too long")


def _unauthenticated() -> Problem:
    return Problem(slug="unauthenticated", headers=_CHALLENGE)
