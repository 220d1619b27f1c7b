"""Lets callers wait for Kafka's acknowledgement, with one query per tick for all of them.

``Prefer: wait=N`` adds no query per caller: each tick reads the status of every awaited message.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from api.http.in_flight import InFlight
from outbox.errors import DatabaseUnavailable
from outbox.messages.message import MessageStatus
from outbox.messages.message_id import HalfId
from outbox.messages.ports import MessageStatuses

TICK_SECONDS: Final = 0.05
WAITING_MAX: Final = 10_000
"""Messages that callers may wait for; whoever comes after that is answered at once."""
REQUESTS_MAX: Final = 1000
"""Requests that may wait, because each occupies a connection."""
READ_MAX: Final = 2000
"""Messages read by one query; more of them take turns."""


class PublicationWait:
    """Watches committed messages until they are published or no caller waits any more."""

    def __init__(
        self, statuses: MessageStatuses, in_flight: InFlight, requests_max: int = REQUESTS_MAX
    ) -> None:
        self._statuses = statuses
        self._in_flight = in_flight
        self._requests_max = requests_max
        self._requests = 0
        self._waiters = 0
        self._waiting: dict[HalfId, set[asyncio.Future[MessageStatus]]] = defaultdict(set)
        self._watching: asyncio.Task[None] | None = None

    async def wait(
        self, half_ids: Sequence[HalfId], seconds: float
    ) -> Mapping[HalfId, MessageStatus] | None:
        """Return those of the messages that were published within ``seconds``, by id.

        Returns None at once if too many wait already. A waiting request takes no room.
        """
        if not half_ids:
            return {}
        if self._waiters + len(half_ids) > WAITING_MAX or self._requests >= self._requests_max:
            return None
        loop = asyncio.get_running_loop()
        futures = {half_id: loop.create_future() for half_id in half_ids}
        for half_id, future in futures.items():
            self._waiting[half_id].add(future)
        self._waiters += len(futures)
        self._requests += 1
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        try:
            with self._in_flight.resting():
                await asyncio.wait(futures.values(), timeout=seconds)
            return {
                half_id: future.result() for half_id, future in futures.items() if future.done()
            }
        finally:
            self._requests -= 1
            self._waiters -= len(futures)
            for half_id, future in futures.items():
                self._leave(half_id, future)

    def _leave(self, half_id: HalfId, future: asyncio.Future[MessageStatus]) -> None:
        self._waiting[half_id].discard(future)
        if not self._waiting[half_id]:
            del self._waiting[half_id]

    async def _watch(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(TICK_SECONDS)
                await self._poll()
        finally:
            self._watching = None

    async def _poll(self) -> None:
        half_ids = list(self._waiting)[:READ_MAX]
        try:
            found = await self._statuses.read(half_ids)
        except DatabaseUnavailable:
            return
        for half_id, status in found.items():
            if status.publication is None:
                if half_id in self._waiting:  # to the end of the queue, so that all take turns
                    self._waiting[half_id] = self._waiting.pop(half_id)
                continue
            for future in self._waiting.get(half_id, ()):
                if not future.done():
                    future.set_result(status)
