"""The daemon: one asyncio loop for the periodic tasks, and the relay's threads beside it.

Tasks run concurrently and never wait for one another. On a stop each task finishes its current
step, if that does not take long, and check-backs settle their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from checker.periodic_task import Heartbeats, PeriodicTask, PeriodicTaskLoop, Silent
from checker.relay.threads import RelayThreads
from outbox.clock import Clock
from outbox.operators.health_check import HEARTBEAT_SECONDS
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

SQL_OUTBOX_SECONDS: Final = 0.02
SQL_OUTBOX_OFF_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 5.0
"""The time that the current steps have to end; a step may wait long for PostgreSQL or Kafka."""
RELAY_LIVENESS_SECONDS: Final = 1.0
RELAY_SILENT_SECONDS: Final = 90.0
"""Longer than any single step; a relay that is silent for longer is not reported as alive."""


class Daemon:
    """Runs the given tasks."""

    def __init__(
        self,
        tasks: Sequence[PeriodicTask],
        heartbeats: Heartbeats,
        clock: Clock,
        metrics: Metrics,
        *,
        relay: RelayThreads | None = None,
        drain: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._loops = [
            PeriodicTaskLoop(task, heartbeats, clock, metrics, beat_seconds=HEARTBEAT_SECONDS)
            for task in tasks
        ]
        self._names = [task.name for task in tasks]
        self._relay = relay
        self._drain = drain
        self._log = get_logger()

    async def run(self, stop: asyncio.Event) -> None:
        """Run every task until ``stop`` is set, then stop cleanly."""
        self._log.info(Event.STARTED, tasks=self._names)
        if self._relay is not None:
            self._relay.start()
        try:
            async with asyncio.TaskGroup() as running:
                tasks = [running.create_task(loop.run(stop)) for loop in self._loops]
                await stop.wait()
                await _end_in_time(tasks)
        finally:
            await self._end()
        self._log.info(Event.STOPPED)

    async def _end(self) -> None:
        ending: list[Awaitable[None]] = []
        if self._drain is not None:
            ending.append(self._drain())
        if self._relay is not None:
            ending.append(asyncio.to_thread(self._relay.stop))
        await asyncio.gather(*ending)


async def _end_in_time(tasks: Collection[asyncio.Task[None]]) -> None:
    """Let the tasks end, then cancel those that do not, as a crash would end them."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()


def sql_outbox_task(admit: Callable[[], Awaitable[int | None]]) -> PeriodicTask:
    """Return the task that admits messages published by producers in their own transactions.

    ``admit`` returns how many; None: the SQL mode is off.
    """

    async def step() -> float:
        admitted = await admit()
        return SQL_OUTBOX_OFF_SECONDS if admitted is None else SQL_OUTBOX_SECONDS

    return PeriodicTask(name="plain", step=step)


def relay_liveness_task(relay: RelayThreads) -> PeriodicTask:
    """Return the task that reports the relay as alive while each of its threads makes progress."""

    async def step() -> float:
        if relay.silent_seconds() > RELAY_SILENT_SECONDS:
            raise Silent
        return RELAY_LIVENESS_SECONDS

    return PeriodicTask(name="relay", step=step)
