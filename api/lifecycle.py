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
    steps: Mapping[str, Callable[[], Awaitable[float]]], drain: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Repeat the steps beside the block; then end them, and flush.

    A step returns the seconds until it is made again.
    """
    stop = asyncio.Event()
    tasks = [asyncio.create_task(_repeat(*each, stop)) for each in steps.items()]
    try:
        yield
    finally:
        stop.set()
        _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
        await drain()
        get_logger().info(Event.STOPPED, program="api")


async def _repeat(name: str, step: Callable[[], Awaitable[float]], stop: asyncio.Event) -> None:
    """Make a step again and again until ``stop`` is set, also after an error."""
    while not stop.is_set():
        seconds = PAUSE_SECONDS
        try:
            seconds = await step()
        except DatabaseUnavailable:
            pass  # the requests, or the bulk actions, log it
        except Exception:  # outermost handler of the task
            get_logger().exception(Event.INTERNAL_ERROR, task=name)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
