"""A task beside the requests of a process: a defect is logged, and the task begins again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

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
