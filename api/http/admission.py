"""Who may come in, and how much: the authenticator, the limits, and the room for requests."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Final

from api.http.authentication.authenticator import Authenticator
from api.http.in_flight import InFlight, TenantShares
from api.http.problems import Problem
from api.http.rate_limits import RateLimit
from api.http.request_body import declared_size
from outbox.access import Caller

BODY_MAX_BYTES: Final = 1_048_576
"""Largest body, but for a batch; also the largest item of a batch."""
BATCH_BODY_MAX_BYTES: Final = 8_388_608
MEMORY_BYTES: Final = 268_435_456
"""Most memory of the requests under way, for ends and for the others; one tenant has at most as
much of it as is left free."""
REQUEST_BYTES: Final = 16_384
BYTES_A_BODY_BYTE: Final = 4
"""What a waiting request takes in memory (measured): so much, and so much for each byte of it."""


class Admission:
    """The door of one process."""

    def __init__(
        self,
        authenticator: Authenticator,
        in_flight: InFlight,
        reads: RateLimit,
    ) -> None:
        self.authenticator = authenticator
        self.reads = reads
        self._in_flight = in_flight
        self._ends, self._others = TenantShares(MEMORY_BYTES), TenantShares(MEMORY_BYTES)

    async def caller(self, headers: dict[bytes, bytes]) -> Caller:
        """Return the caller; raises Problem ``unauthenticated`` and DatabaseUnavailable."""
        return await self.authenticator.caller(headers.get(b"authorization"))

    def place(
        self, caller: Caller, headers: dict[bytes, bytes], max_bytes: int, *, is_end: bool = False
    ) -> AbstractContextManager[None]:
        """Take a request's place, from its body to its answer: a block. Raises Problem.

        An end finds a place unless its tenant has thousands that PostgreSQL has not answered.
        """
        size, tenant = _size(declared_size(headers, max_bytes)), caller.tenant
        shares = self._ends if is_end else self._others
        if not shares.allow(tenant, size):
            raise _too_many_ends() if is_end else Problem(slug="overloaded", retry_after_seconds=1)
        in_flight = None if is_end else self._in_flight
        if in_flight is not None:
            in_flight.__enter__()
        shares.take(tenant, size)
        return _Place(shares, tenant, size, in_flight)


class _Place:
    """A place that is given back at the end of a block."""

    __slots__ = ("_in_flight", "_shares", "_size", "_tenant")

    def __init__(
        self, shares: TenantShares, tenant: Hashable, size: int, in_flight: InFlight | None
    ) -> None:
        self._shares, self._tenant, self._size = shares, tenant, size
        self._in_flight = in_flight

    def __enter__(self) -> None:
        """Hold it."""

    def __exit__(self, *_: object) -> None:
        self._shares.give_back(self._tenant, self._size)
        if self._in_flight is not None:
            self._in_flight.__exit__()


def _size(body_bytes: int) -> int:
    return REQUEST_BYTES + BYTES_A_BODY_BYTE * body_bytes


def _too_many_ends() -> Problem:
    detail = "too many ends wait for PostgreSQL; nothing was stored"
    return Problem(slug="database-unavailable", detail=detail, retry_after_seconds=1)
