"""Who is calling: API keys, or anybody where only loopback listens.

A verified key is remembered for a few seconds, so a busy producer costs one look-up now and then; a
revoked key stops working everywhere within that time.
"""

from __future__ import annotations

from typing import Final, Protocol

from api.http.problems import Problem
from outbox.access import ANYBODY, ApiKeys, Caller, caller_of
from outbox.clock import Clock

REMEMBERED_SECONDS: Final = 5.0
REMEMBERED_MAX: Final = 10_000
_CHALLENGE: Final = {"www-authenticate": "Bearer"}


class Authenticator(Protocol):
    """Tells from the Authorization header who is calling."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller; raises Problem ``unauthenticated``."""


class AnybodyOnLoopback:
    """AUTH_MODE=dev-insecure: every caller may do everything."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the one caller there is, whatever the header says."""
        return ANYBODY


class KeyAuthenticator:
    """AUTH_MODE=keys: ``Authorization: Bearer obx_…``."""

    def __init__(self, keys: ApiKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._remembered: dict[bytes, tuple[float, Caller]] = {}

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller whose key this is; raises Problem and DatabaseUnavailable."""
        if authorization is None:
            raise Problem(slug="unauthenticated", headers=_CHALLENGE)
        now = self._clock.monotonic()
        known = self._remembered.get(authorization)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        caller = await self._verify(authorization)
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[authorization] = (now, caller)
        return caller

    def forget(self) -> None:
        """Look every key up again, because one was revoked here."""
        self._remembered.clear()

    async def _verify(self, authorization: bytes) -> Caller:
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() == b"bearer" and token.isascii():
            key = await self._keys.verify(token.decode().strip())
            if key is not None:
                return caller_of(key)
        raise Problem(slug="unauthenticated", headers=_CHALLENGE)
