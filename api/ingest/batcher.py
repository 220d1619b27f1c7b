"""Gathers requests into flushes: the next flush takes what came while the last one ran.

There is no timer: alone, a request is a flush of one; under load the flush grows by itself. A flush
is sealed before its database transaction begins (O5): nothing joins it afterwards, so the order of
xids is the order of arrival. Nobody is answered before their flush has committed, and a caller who
goes away takes nothing from the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from outbox.errors import Overloaded

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

RETRY_AFTER_SECONDS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushLimits:
    """The most one flush takes, and the most that may wait for one.

    ``waiting_rows`` None means that nothing is refused: ends are never turned away for load (P25);
    their number is bounded by the connections that carry them.
    """

    rows: int = 2048
    payload_bytes: int = 16_777_216
    waiting_rows: int | None = None
    waiting_bytes: int = 134_217_728
    inflight: int = 1


@dataclass(slots=True, eq=False)
class _Waiter(Generic[Item, Outcome]):
    """One request's items and the future that its caller awaits."""

    items: Sequence[Item]
    payload_bytes: int
    answered: asyncio.Future[Sequence[Outcome]]


class MicroBatcher(Generic[Item, Outcome]):
    """Turns many small requests into few database commits."""

    def __init__(
        self,
        flush: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]],
        limits: FlushLimits,
    ) -> None:
        self._flush = flush
        self._limits = limits
        self._queue: deque[_Waiter[Item, Outcome]] = deque()
        self._rows = 0
        self._bytes = 0
        self._running: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def waiting_rows(self) -> int:
        """How many items wait for a flush."""
        return self._rows

    async def submit(self, items: Sequence[Item], payload_bytes: int = 0) -> Sequence[Outcome]:
        """Return the outcomes of these items, in order, once their flush has committed.

        A submission is never split. Raises Overloaded when the queue is full, and whatever the
        flush raised.
        """
        self._refuse_if_full(len(items), payload_bytes)
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        waiter: _Waiter[Item, Outcome] = _Waiter(items, payload_bytes, loop.create_future())
        self._queue.append(waiter)
        self._rows += len(items)
        self._bytes += payload_bytes
        self._start(loop)
        return await waiter.answered

    async def drain(self) -> None:
        """Wait until everything that was accepted has been flushed."""
        while self._running:
            await asyncio.wait(self._running)

    def _refuse_if_full(self, rows: int, payload_bytes: int) -> None:
        most = self._limits.waiting_rows
        if most is None or not self._queue:
            return
        if self._rows + rows > most or self._bytes + payload_bytes > self._limits.waiting_bytes:
            raise Overloaded(RETRY_AFTER_SECONDS)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if len(self._running) < self._limits.inflight:
            task = loop.create_task(self._run())
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Begin again if somebody came between the last look at the queue and the task's end."""
        self._running.discard(task)
        if self._queue:
            self._start(task.get_loop())

    async def _run(self) -> None:
        """Flush until nothing waits; the first seal comes after this turn's other requests."""
        while self._queue:
            await self._answer(self._seal())

    def _seal(self) -> list[_Waiter[Item, Outcome]]:
        """Take what waits, oldest first, up to the limits; at least one submission."""
        sealed: list[_Waiter[Item, Outcome]] = []
        rows = payload_bytes = 0
        while self._queue:
            head = self._queue[0]
            rows += len(head.items)
            payload_bytes += head.payload_bytes
            too_much = rows > self._limits.rows or payload_bytes > self._limits.payload_bytes
            if sealed and too_much:
                break
            sealed.append(self._queue.popleft())
            self._rows -= len(head.items)
            self._bytes -= head.payload_bytes
        return sealed

    async def _answer(self, sealed: Sequence[_Waiter[Item, Outcome]]) -> None:
        """Run one flush and hand each caller its own outcomes, or all of them the failure."""
        items = [item for waiter in sealed for item in waiter.items]
        try:
            outcomes = await self._flush(items)
        except Exception as error:  # the edge: every waiter must hear of it
            for waiter in sealed:
                if not waiter.answered.done():
                    waiter.answered.set_exception(error)
            return
        place = 0
        for waiter in sealed:
            after = place + len(waiter.items)
            if not waiter.answered.done():
                waiter.answered.set_result(outcomes[place:after])
            place = after
