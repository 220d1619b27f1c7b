"""The daemon: one asyncio loop for the chores and the relay's threads beside it.

Chores live side by side and never wait for one another; stopping lets each finish the step that is
under way and lets check backs settle what they know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from checker.checks.sweeper import Sweeper
from checker.maintenance.ports import AdvisoryLocks, Heartbeats
from checker.periodic_task import PeriodicTask, PeriodicTaskLoop, Silent
from checker.relay.threads import RelayThreads
from outbox.clock import Clock
from outbox.messages.ports import SqlOutbox
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

SWEEP_SECONDS: Final = 0.1
PLAIN_SECONDS: Final = 0.02
PLAIN_OFF_SECONDS: Final = 1.0
TURN_BUSY_SECONDS: Final = 1.0
RELAY_SILENT_SECONDS: Final = 90.0
"""Longer than any single step; a relay that is quieter is not reported as alive."""


class Daemon:
    """Runs the chores that it is given."""

    def __init__(
        self,
        chores: Sequence[PeriodicTask],
        heartbeats: Heartbeats,
        clock: Clock,
        metrics: Metrics,
        *,
        beat_seconds: float,
        relay: RelayThreads | None = None,
        drain: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._loops = [
            PeriodicTaskLoop(chore, heartbeats, clock, metrics, beat_seconds=beat_seconds)
            for chore in chores
        ]
        self._names = [chore.name for chore in chores]
        self._relay = relay
        self._drain = drain
        self._log = get_logger()

    async def run(self, stop: asyncio.Event) -> None:
        """Run every chore until ``stop`` is set, then end in good order."""
        self._log.info(Event.STARTED, chores=self._names)
        if self._relay is not None:
            self._relay.start()
        try:
            async with asyncio.TaskGroup() as chores:
                for loop in self._loops:
                    chores.create_task(loop.run(stop))
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


def sweep_chore(sweeper: Sweeper, turns: AdvisoryLocks) -> PeriodicTask:
    """Return the chore that sweeps; one checker at a time does."""

    async def step() -> float:
        async with turns.turn("sweep") as held:
            if not held:
                return TURN_BUSY_SECONDS
            swept = await sweeper.run_once()
        return 0.0 if sweeper.is_full(swept) else SWEEP_SECONDS

    return PeriodicTask(name="sweep", step=step)


def plain_chore(plain: SqlOutbox) -> PeriodicTask:
    """Return the chore that admits what producers published in transactions of their own."""

    async def step() -> float:
        admitted = await plain.admit()
        return PLAIN_OFF_SECONDS if admitted is None else PLAIN_SECONDS

    return PeriodicTask(name="plain", step=step)


def relay_chore(relay: RelayThreads) -> PeriodicTask:
    """Return the chore that reports the relay's threads as alive while they are."""

    async def step() -> float:
        if relay.silent_seconds() > RELAY_SILENT_SECONDS:
            raise Silent
        return TURN_BUSY_SECONDS

    return PeriodicTask(name="relay", step=step)
