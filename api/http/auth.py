"""Authentication: API keys, or no authentication on loopback.

A verified key is cached for a few seconds, so a busy producer rarely costs a look-up. A revoked key
stops working everywhere within that time.
"""

from __future__ import annotations

from typing import Final, Protocol

from api.http.problems import Problem
from outbox.access import ANYBODY, ApiKeys, Caller, caller_of
from outbox.clock import Clock

CACHE_SECONDS: Final = 5.0
CACHE_MAX: Final = 10_000
_CHALLENGE: Final = {"www-authenticate": "Bearer"}


class Authenticator(Protocol):
    """Finds the caller by the Authorization header."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller; raises Problem ``unauthenticated``."""


class InsecureAuthenticator:
    """AUTH_MODE=dev-insecure: every caller has every scope."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the one caller of this mode; the header is ignored."""
        return ANYBODY


class KeyAuthenticator:
    """AUTH_MODE=keys: ``Authorization: Bearer obx_…``."""

    def __init__(self, keys: ApiKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._cache: dict[bytes, tuple[float, Caller]] = {}

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller whose key this is; raises Problem and DatabaseUnavailable."""
        if authorization is None:
            raise Problem(slug="unauthenticated", headers=_CHALLENGE)
        now = self._clock.monotonic()
        cached = self._cache.get(authorization)
        if cached is not None and now - cached[0] < CACHE_SECONDS:
            return cached[1]
        caller = await self._verify(authorization)
        if len(self._cache) >= CACHE_MAX:
            self._cache.clear()
        self._cache[authorization] = (now, caller)
        return caller

    def forget(self) -> None:
        """Empty the cache, because this process revoked a key."""
        self._cache.clear()

    async def _verify(self, authorization: bytes) -> Caller:
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() == b"bearer" and token.isascii():
            key = await self._keys.verify(token.decode().strip())
            if key is not None:
                return caller_of(key)
        raise Problem(slug="unauthenticated", headers=_CHALLENGE)
