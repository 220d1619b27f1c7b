"""AUTH_MODE=keys: API keys, verified rarely.

A verified key is remembered for seconds, so a busy producer rarely costs a query; a key that is
revoked or expires stops working everywhere within that time. A token without our checksum costs no
query at all. One query runs at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from api.http.fresh_values import FreshValues
from api.http.problems import Problem
from outbox.access import Caller
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from outbox.postgres.operators.api_keys import PostgresApiKeys

CACHE_SECONDS: Final = 5.0
_CHALLENGE: Final = {"www-authenticate": "Bearer"}


class KeyAuthenticator:
    """Reads ``Authorization: Bearer obx_…``; every spelling of a header is the same token."""

    def __init__(self, keys: PostgresApiKeys, clock: Clock) -> None:
        self._keys = keys
        self._callers = FreshValues(self._verify, clock, CACHE_SECONDS)

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse nothing: only the key counts."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller whose key this is; raises Problem and DatabaseUnavailable."""
        token = _token_of(authorization)
        if self._callers.has_stale([token]):
            if not self._keys.is_issued(token):
                raise _unauthenticated()
            await self._callers.refresh([token])
            if self._callers.has_stale([token]):  # the key may have ended since the query began
                raise DatabaseUnavailable("the verification of a key takes too long")
        caller = self._callers.kept([token]).get(token)
        if caller is None:
            raise _unauthenticated()
        return caller

    def forget(self, key_id: str) -> None:
        """Verify this key again at its next use, because this process revoked it."""
        self._callers.forget(lambda caller: caller is not None and caller.key_id == key_id)

    async def _verify(self, tokens: Collection[str]) -> dict[str, Caller]:
        found = zip(tokens, await self._keys.verify(list(tokens)), strict=True)
        return {token: caller for token, caller in found if caller is not None}


def _token_of(authorization: bytes | None) -> str:
    scheme, _, token = (authorization or b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.isascii():
        raise _unauthenticated()
    return token.strip().decode()


def _unauthenticated() -> Problem:
    return Problem(slug="unauthenticated", headers=_CHALLENGE)
