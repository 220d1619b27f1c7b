"""AUTH_MODE=keys: API keys, verified rarely.

A verified key is remembered for seconds, so a busy producer rarely costs a query; a key that is
revoked or expires stops working everywhere within that time. A token without our checksum costs no
query at all. Tokens of the older form, whose checksum anybody can compute, are verified apart from
the others: by one query at a time, for which few wait. What was refused is remembered.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from api.http.authentication.key_verifier import KeyVerifier
from api.http.problems import Problem
from outbox.access import ApiKeys, Caller, TokenOrigin, caller_of
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

ValueT = TypeVar("ValueT")

CACHE_SECONDS: Final = 5.0
CACHE_MAX: Final = 10_000
"""Most keys, and most refused tokens, that are remembered; then the oldest one goes."""
WAIT_SECONDS: Final = 5.0
"""Longest wait for a verification."""
_CHALLENGE: Final = {"www-authenticate": "Bearer"}


class KeyAuthenticator:
    """Reads ``Authorization: Bearer obx…``; every spelling of a header is the same token."""

    def __init__(self, keys: ApiKeys, clock: Clock, *, cache_max: int = CACHE_MAX) -> None:
        self._keys = keys
        self._clock = clock
        self._cache_max = cache_max
        self._known: dict[bytes, tuple[float, Caller]] = {}
        self._refused: dict[bytes, float] = {}
        self._issued = KeyVerifier(keys, clock)
        self._unproven = KeyVerifier(keys, clock, bounded=True)
        self._revocations = 0

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse nothing: only the key counts."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller whose key this is; raises Problem and DatabaseUnavailable."""
        token = _token_of(authorization)
        oldest = self._clock.monotonic() - CACHE_SECONDS
        known = self._known.get(token)
        if known is not None and known[0] > oldest:
            return known[1]
        if self._refused.get(token, oldest) > oldest:
            raise _unauthenticated()
        return await self._verify(token, self._verifier(token))

    def forget(self, key_id: str) -> None:
        """Verify this key again at its next use, because this process revoked it."""
        self._revocations += 1
        self._issued.forget()
        self._unproven.forget()
        for token in [
            token for token, (_, caller) in self._known.items() if caller.key_id == key_id
        ]:
            del self._known[token]

    def _verifier(self, token: bytes) -> KeyVerifier:
        """Return who verifies a token; raises Problem for one that we never issued."""
        origin = self._keys.origin(token.decode())
        if origin is TokenOrigin.FOREIGN:
            raise _unauthenticated()
        proven = origin is TokenOrigin.ISSUED or token in self._known
        return self._issued if proven else self._unproven

    async def _verify(self, token: bytes, verifier: KeyVerifier) -> Caller:
        before = self._revocations
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                began, key = await verifier.verify(token.decode())
        except TimeoutError:
            raise _too_slow() from None
        self._known.pop(token, None)
        if key is None:
            _remember(self._refused, token, began, self._cache_max)
            raise _unauthenticated()
        if self._clock.monotonic() - began >= CACHE_SECONDS:
            raise _too_slow()  # the key may have ended since the query began
        caller = caller_of(key)
        if before == self._revocations:
            _remember(self._known, token, (began, caller), self._cache_max)
        return caller


def _remember(entries: dict[bytes, ValueT], token: bytes, value: ValueT, most: int) -> None:
    """Add the newest entry; above the limit the oldest one goes, and nobody else."""
    entries.pop(token, None)
    entries[token] = value
    if len(entries) > most:
        del entries[next(iter(entries))]


def _token_of(authorization: bytes | None) -> bytes:
    scheme, _, token = (authorization or b"").partition(b" ")
    token = token.strip()
    if scheme.lower() != b"bearer" or not token.isascii():
        raise _unauthenticated()
    return token


def _too_slow() -> DatabaseUnavailable:
    return DatabaseUnavailable("the verification of a key takes too long")


def _unauthenticated() -> Problem:
    return Problem(slug="unauthenticated", headers=_CHALLENGE)
