"""Groups requests into flushes: the next flush takes what arrived while the last one ran.

There is no timer. A single request is a flush of one; under load the flush grows by itself. A flush
is sealed before its database transaction begins: nothing joins it afterwards, so the order of
xids is the order of arrival. No caller is answered before its flush has committed. A caller that
disconnects does not affect the others.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, Generic, TypeVar

from api.http.tenant_shares import TenantShares
from outbox.errors import DatabaseUnavailable, Overloaded

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")

RETRY_AFTER_SECONDS: Final = 1
FLUSH_ROWS: Final = 2048
FLUSH_BYTES: Final = 16_777_216
"""The most rows and bytes of a flush, except for one larger submission."""
WAIT_SECONDS: Final = 10.0
"""Longest wait for a flush while flushes fail: each may take long to fail."""


@dataclass(slots=True, eq=False)
class _Waiter(Generic[ItemT, OutcomeT]):
    """The items of one request, and the future that its caller awaits."""

    items: Sequence[ItemT]
    rows: int
    payload_bytes: int
    tenant: Hashable
    answered: asyncio.Future[Sequence[OutcomeT]]
    since: float
    """When it came, in the loop's time."""


class MicroBatcher(Generic[ItemT, OutcomeT]):
    """Turns many small requests into few database commits."""

    def __init__(
        self,
        flush: Callable[[Sequence[ItemT]], Awaitable[Sequence[OutcomeT]]],
        observe: Callable[[float], None],
        waiting_rows: int = sys.maxsize,
        *,
        rows: int = FLUSH_ROWS,
    ) -> None:
        """Take what runs a flush; ``observe`` gets the seconds of each good one.

        A tenant has at most as many of the ``waiting_rows`` as are left free: half, if no other
        tenant waits. Ends have no limit, because they are never refused for load (P25); the guard
        bounds their memory.
        """
        self._observe = observe
        self._flush = flush
        self._most_rows = rows
        self._queue: deque[_Waiter[ItemT, OutcomeT]] = deque()
        self._rows = TenantShares(waiting_rows)
        self._running: asyncio.Task[None] | None = None

    async def submit(
        self,
        items: Sequence[ItemT],
        payload_bytes: int = 0,
        tenant: Hashable = None,
        rows: int | None = None,
    ) -> Sequence[OutcomeT]:
        """Return the outcomes of these items, in order, once their flush has committed.

        A submission is never split, and an empty one needs no flush. ``rows`` is the number of rows
        that the items make; None: one each. Raises Overloaded when the tenant's share of the queue
        is full, DatabaseUnavailable when no flush begins in time, and whatever the flush raised.
        """
        if not items:
            return []
        rows = len(items) if rows is None else rows
        if self._queue and not self._rows.allow(tenant, rows):
            raise Overloaded(RETRY_AFTER_SECONDS)
        loop = asyncio.get_running_loop()
        waiter: _Waiter[ItemT, OutcomeT] = _Waiter(
            items, rows, payload_bytes, tenant, loop.create_future(), loop.time()
        )
        self._queue.append(waiter)
        self._rows.take(tenant, rows)
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        return await waiter.answered

    async def drain(self) -> None:
        """Wait until everything that was accepted has been flushed."""
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        """Flush until nothing waits; the first seal includes this loop turn's other requests."""
        while self._queue:
            if not await self._answer(self._seal()):
                self._give_up_on_the_oldest()

    def _give_up_on_the_oldest(self) -> None:
        """Refuse what has waited too long, after a flush that failed; nothing of it was stored."""
        oldest = asyncio.get_running_loop().time() - WAIT_SECONDS
        while self._queue and self._queue[0].since <= oldest:
            late = self._take()
            if not late.answered.done():
                late.answered.set_exception(DatabaseUnavailable("no flush began in time"))

    def _take(self) -> _Waiter[ItemT, OutcomeT]:
        """Take the oldest submission, and make its places free."""
        taken = self._queue.popleft()
        self._rows.give_back(taken.tenant, taken.rows)
        return taken

    def _seal(self) -> list[_Waiter[ItemT, OutcomeT]]:
        """Take the waiting submissions, oldest first, up to the limits; at least one."""
        sealed: list[_Waiter[ItemT, OutcomeT]] = []
        rows = payload_bytes = 0
        while self._queue:
            head = self._queue[0]
            rows += head.rows
            payload_bytes += head.payload_bytes
            if sealed and (rows > self._most_rows or payload_bytes > FLUSH_BYTES):
                break
            sealed.append(self._take())
        return sealed

    async def _answer(self, sealed: Sequence[_Waiter[ItemT, OutcomeT]]) -> bool:
        """Run one flush; give each caller its own outcomes, or all of them the error.

        Returns whether the flush was good.
        """
        items = [item for waiter in sealed for item in waiter.items]
        began = perf_counter()
        try:
            outcomes = await self._flush(items)
        except Exception as error:  # every waiter must receive the error
            for waiter in sealed:
                if not waiter.answered.done():
                    waiter.answered.set_exception(error)
            return False
        self._observe(perf_counter() - began)
        start = 0
        for waiter in sealed:
            stop = start + len(waiter.items)
            if not waiter.answered.done():
                waiter.answered.set_result(outcomes[start:stop])
            start = stop
        return True
