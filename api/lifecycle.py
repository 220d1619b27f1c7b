"""The tasks of a service that run beside its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from outbox.errors import DatabaseUnavailable
from outbox.telemetry.events import Event, get_logger

PAUSE_SECONDS: Final = 5.0
GRACE_SECONDS: Final = 5
"""The time that background tasks have to end their step; it may wait for PostgreSQL or Kafka."""


@asynccontextmanager
async def running(
    tasks: Mapping[str, Callable[[asyncio.Event], Awaitable[None]]],
    drain: Callable[[], Awaitable[None]],
) -> AsyncIterator[None]:
    """Run the tasks beside the block; then end them, and flush."""
    stop = asyncio.Event()
    started = [asyncio.create_task(_until_stopped(*each, stop)) for each in tasks.items()]
    try:
        yield
    finally:
        stop.set()
        _, late = await asyncio.wait(started, timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
        await drain()
        get_logger().info(Event.STOPPED, program="api")


async def _until_stopped(
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
