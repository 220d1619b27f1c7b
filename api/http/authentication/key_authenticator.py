"""AUTH_MODE=keys: API keys, verified rarely.

A verified key is remembered for seconds, so a busy producer rarely costs a query; a key that is
revoked or expires stops working everywhere within that time. A token without our checksum costs no
query at all. One query runs at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from api.http.problems import Problem
from outbox.access import Caller, caller_of
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from outbox.postgres.operators.api_keys import PostgresApiKeys

CACHE_SECONDS: Final = 5.0
CACHE_MAX: Final = 10_000
"""Most keys that are remembered; then the oldest one goes."""
WAIT_SECONDS: Final = 5.0
"""Longest wait for a verification."""
_CHALLENGE: Final = {"www-authenticate": "Bearer"}

Known = tuple[float, Caller | None]
"""When the query of a token began, and its caller; None: it was refused."""


class KeyAuthenticator:
    """Reads ``Authorization: Bearer obx_…``; every spelling of a header is the same token."""

    def __init__(self, keys: PostgresApiKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._known: dict[str, Known] = {}
        self._turn = asyncio.Lock()

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse nothing: only the key counts."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller whose key this is; raises Problem and DatabaseUnavailable."""
        token = _token_of(authorization)
        known = self._remembered(token)
        if known is None:
            if not self._keys.is_issued(token):
                raise _unauthenticated()
            known = await self._verify(token)
        _, caller = known
        if caller is None:
            raise _unauthenticated()
        return caller

    def forget(self, key_id: str) -> None:
        """Verify this key again at its next use, because this process revoked it."""
        found = [each for each, (_, key) in self._known.items() if key and key.key_id == key_id]
        for token in found:
            del self._known[token]

    def _remembered(self, token: str) -> Known | None:
        known = self._known.get(token)
        if known is None or known[0] <= self._clock.monotonic() - CACHE_SECONDS:
            return None
        return known

    async def _verify(self, token: str) -> Known:
        """Wait for the query of others, which may be about the same token, then ask."""
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._turn:
                return self._remembered(token) or await self._ask(token)
        except TimeoutError:
            raise _too_slow() from None

    async def _ask(self, token: str) -> Known:
        began = self._clock.monotonic()
        [key] = await self._keys.verify([token])
        if self._clock.monotonic() - began >= CACHE_SECONDS:
            raise _too_slow()  # the key may have ended since the query began
        known = began, None if key is None else caller_of(key)
        self._known.pop(token, None)
        self._known[token] = known
        if len(self._known) > CACHE_MAX:
            del self._known[next(iter(self._known))]
        return known


def _token_of(authorization: bytes | None) -> str:
    scheme, _, token = (authorization or b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.isascii():
        raise _unauthenticated()
    return token.strip().decode()


def _too_slow() -> DatabaseUnavailable:
    return DatabaseUnavailable("the verification of a key takes too long")


def _unauthenticated() -> Problem:
    return Problem(slug="unauthenticated", headers=_CHALLENGE)
