"""Runs a task step by step while the process lives, despite lost databases and defects.

A lost PostgreSQL is retried with back-off; its loss and its return are logged once each. Any other
error is logged and the task continues: one bad step must not end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """A repeated task; ``step`` returns the seconds until the next step."""

    name: str
    step: Callable[[], Awaitable[float]]


class Heartbeats(Protocol):
    """Shows other processes that a task is alive."""

    async def beat(self, task: str) -> None:
        """Store, by the database's clock, that the task has just made progress."""


class Silent(Exception):
    """The task continues, but sends no heartbeat, because what it watches is not alive."""


class PeriodicTaskLoop:
    """Repeats one task until ``stop`` is set, and sends its heartbeats."""

    def __init__(
        self,
        task: PeriodicTask,
        heartbeats: Heartbeats,
        clock: Clock,
        metrics: Metrics,
        *,
        beat_seconds: float,
    ) -> None:
        self._task = task
        self._heartbeats = heartbeats
        self._clock = clock
        self._metrics = metrics
        self._beat_seconds = beat_seconds
        self._next_beat = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self._postgres = DependencyLog("postgres", task=task.name)
        self._well = False
        """The last step was good."""
        self._log = get_logger()

    async def run(self, stop: asyncio.Event) -> None:
        """Repeat the step until ``stop`` is set; return after the current step."""
        while not stop.is_set():
            await self._rest(await self.run_once(), stop)

    async def _rest(self, seconds: float, stop: asyncio.Event) -> None:
        """Wait for the next step. A task whose last step was good goes on beating meanwhile."""
        over = self._clock.monotonic() + seconds
        while not stop.is_set():
            left = max(0.0, over - self._clock.monotonic())
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(left, self._beat_seconds))
            if left <= self._beat_seconds:
                return
            if self._well:
                with suppress(DatabaseUnavailable):
                    await self._beat()

    async def run_once(self) -> float:
        """Do one step and handle its errors; return the seconds until the next."""
        self._well = False
        try:
            delay = await self._task.step()
            await self._beat()
        except Silent:
            return LONGEST_PAUSE_SECONDS
        except DatabaseUnavailable as error:
            self._postgres.lost(error)
        except Exception as error:
            self._log.exception(Event.STEP_FAILED, task=self._task.name, error=type(error).__name__)
        else:
            self._well = True
            self._pause = FIRST_PAUSE_SECONDS
            self._postgres.back()
            return delay
        pause = self._pause
        self._pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        return pause

    async def _beat(self) -> None:
        now = self._clock.monotonic()
        if now >= self._next_beat:
            await self._heartbeats.beat(self._task.name)
            self._next_beat = now + self._beat_seconds
            gauge = self._metrics["checker_heartbeat_timestamp_seconds"]
            gauge.labels(self._task.name).set(self._clock.now().timestamp())
