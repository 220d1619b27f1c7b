"""Tasks beside the requests of a process: a defect is logged, and the task begins again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from outbox.errors import DatabaseUnavailable
from outbox.telemetry.events import Event, get_logger

PAUSE_SECONDS: Final = 5.0


async def until_stopped(
    name: str, run: Callable[[asyncio.Event], Awaitable[None]], stop: asyncio.Event
) -> None:
    """Run a task that returns once ``stop`` is set; after an error it begins again."""
    while not stop.is_set():
        try:
            await run(stop)
        except Exception:  # outermost handler of the task
            get_logger().exception(Event.INTERNAL_ERROR, task=name)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PAUSE_SECONDS)


def repeated(
    step: Callable[[], Awaitable[float]],
) -> Callable[[asyncio.Event], Awaitable[None]]:
    """Return a task of steps, each of which returns the seconds until the next one.

    A PostgreSQL that is away ends no task; the last step is made when it is stopped.
    """

    async def run(stop: asyncio.Event) -> None:
        seconds = PAUSE_SECONDS
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), seconds)
            with suppress(DatabaseUnavailable):
                seconds = await step()

    return run
