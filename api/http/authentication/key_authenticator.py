"""AUTH_MODE=keys: API keys, verified rarely.

A verified key is remembered for seconds, so a busy producer rarely costs a query; a key that is
revoked or expires stops working everywhere within that time. A token without our checksum costs no
query at all. Tokens of the older form, whose checksum anybody can compute, are verified one at a
time; what was refused is remembered.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from api.http.problems import Problem
from outbox.access import ApiKeys, Caller, TokenOrigin, caller_of
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

ValueT = TypeVar("ValueT")

CACHE_SECONDS: Final = 5.0
CACHE_MAX: Final = 10_000
"""Most keys, and most refused tokens, that are remembered; then the oldest one goes."""
ISSUED_SLOTS: Final = 2
UNPROVEN_SLOTS: Final = 1
"""Verifications at a time: far below the pool's connections, which belong to verified callers."""
WAIT_SECONDS: Final = 5.0
"""Longest wait for a verification to begin."""
_CHALLENGE: Final = {"www-authenticate": "Bearer"}


class KeyAuthenticator:
    """Reads ``Authorization: Bearer obx…``; every spelling of a header is the same token."""

    def __init__(self, keys: ApiKeys, clock: Clock, *, cache_max: int = CACHE_MAX) -> None:
        self._keys = keys
        self._clock = clock
        self._cache_max = cache_max
        self._known: dict[bytes, tuple[float, Caller]] = {}
        self._refused: dict[bytes, float] = {}
        self._verifying: dict[bytes, asyncio.Task[Caller]] = {}
        self._issued = asyncio.Semaphore(ISSUED_SLOTS)
        self._unproven = asyncio.Semaphore(UNPROVEN_SLOTS)
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
        task = self._verifying.get(token) or self._start(token)
        return await asyncio.shield(task)

    def forget(self, key_id: str) -> None:
        """Verify this key again at its next use, because this process revoked it."""
        self._revocations += 1
        for token in [
            token for token, (_, caller) in self._known.items() if caller.key_id == key_id
        ]:
            del self._known[token]

    def _start(self, token: bytes) -> asyncio.Task[Caller]:
        """Verify a token once for everybody who sends it meanwhile; raises Problem."""
        origin = self._keys.origin(token.decode())
        if origin is TokenOrigin.FOREIGN:
            raise _unauthenticated()
        proven = origin is TokenOrigin.ISSUED or token in self._known
        task = asyncio.create_task(self._verify(token, self._issued if proven else self._unproven))
        self._verifying[token] = task
        task.add_done_callback(lambda done: self._finished(token, done))
        return task

    def _finished(self, token: bytes, task: asyncio.Task[Caller]) -> None:
        del self._verifying[token]
        if not task.cancelled():
            task.exception()  # everybody who waited may be gone

    async def _verify(self, token: bytes, slots: asyncio.Semaphore) -> Caller:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await slots.acquire()
        except TimeoutError:
            raise DatabaseUnavailable("too many keys wait for their verification") from None
        before = self._revocations
        try:
            key = await self._keys.verify(token.decode())
        finally:
            slots.release()
        self._known.pop(token, None)
        if key is None:
            _remember(self._refused, token, self._clock.monotonic(), self._cache_max)
            raise _unauthenticated()
        caller = caller_of(key)
        if before == self._revocations:
            entry = (self._clock.monotonic(), caller)
            _remember(self._known, token, entry, self._cache_max)
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


def _unauthenticated() -> Problem:
    return Problem(slug="unauthenticated", headers=_CHALLENGE)
