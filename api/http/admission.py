"""Who may come in, and how much: the authenticator, the limits, and the memory for requests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final, Protocol

from api.http.problems import Problem
from api.http.rate_limits import RateLimit
from api.http.request_body import declared_size
from api.http.tenant_shares import TenantShares
from outbox.access import Caller, Scope

BODY_MAX_BYTES: Final = 1_048_576
"""Largest body, but for a batch; also the largest item of a batch."""
BATCH_BODY_MAX_BYTES: Final = 8_388_608
MEMORY_BYTES: Final = 268_435_456
"""Most memory of the requests under way, for ends and for the others; one tenant has at most as
much of it as is left free."""
REQUEST_BYTES: Final = 16_384
BYTES_A_BODY_BYTE: Final = 4
"""What a waiting request takes in memory (measured): so much, and so much for each byte of it."""


class Authenticator(Protocol):
    """Finds the caller by the headers of a request."""

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse what no caller of this mode sends, on every path; raises Problem."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller; raises Problem ``unauthenticated`` and DatabaseUnavailable."""

    def forget(self, key_id: str) -> None:
        """Drop what this process remembers of a key."""


def require_scope(caller: Caller, scope: Scope) -> None:
    """Raise Problem unless the caller has the scope."""
    if not caller.has(scope):
        raise Problem(slug="scope-missing", detail=f"the key needs {scope}")


class Admission:
    """The door of one process."""

    def __init__(self, authenticator: Authenticator, reads: RateLimit) -> None:
        self.authenticator = authenticator
        self.reads = reads
        self._ends, self._others = TenantShares(MEMORY_BYTES), TenantShares(MEMORY_BYTES)

    def place(
        self, caller: Caller, headers: dict[bytes, bytes], max_bytes: int, *, is_end: bool = False
    ) -> AbstractContextManager[None]:
        """Take a request's place, from its body to its answer: a block. Raises Problem.

        An end finds a place unless its tenant has thousands that PostgreSQL has not answered.
        """
        size = REQUEST_BYTES + BYTES_A_BODY_BYTE * declared_size(headers, max_bytes)
        tenant = caller.tenant
        shares = self._ends if is_end else self._others
        if not shares.allow(tenant, size):
            if not is_end:
                raise Problem(slug="overloaded")
            detail = "too many ends wait for PostgreSQL; nothing was stored"
            raise Problem(slug="database-unavailable", detail=detail)
        return shares.held(tenant, size)
