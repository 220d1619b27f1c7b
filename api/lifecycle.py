"""Opens and closes the parts of a service: its pool, its metrics, and its tasks beside requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from api.app import Lifespan
from api.ingest.batcher import MicroBatcher
from api.metrics.metrics_page import MetricsPage
from outbox.errors import DatabaseUnavailable
from outbox.messages.message import End, EndOutcome, Message, PrepareOutcome
from outbox.postgres.sessions.connections import Pool
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics_server import metrics_server

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans

PAUSE_SECONDS: Final = 5.0
GRACE_SECONDS: Final = 5
"""The time that background tasks have to end their step; it may wait for PostgreSQL or Kafka."""
DRAIN_SECONDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushes:
    """What collects prepares and ends."""

    prepares: MicroBatcher[Message, PrepareOutcome]
    ends: MicroBatcher[End, EndOutcome]

    async def drain(self) -> None:
        """Flush everything that was accepted, if PostgreSQL answers in time."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.prepares.drain()
                await self.ends.drain()
        except TimeoutError:
            get_logger().warning(Event.DEPENDENCY_LOST, dependency="postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that the lifespan opens and closes."""

    pool: Pool
    flushes: Flushes
    metrics_page: MetricsPage
    metrics_bind: str | None
    """Where metrics are served apart from the API; None: only by the API itself."""
    shares_metrics_bind: bool
    """Several workers listen there."""
    tasks: dict[str, Callable[[asyncio.Event], Awaitable[None]]]
    """By name, what runs beside the requests until the event is set."""
    wake: Callable[[], None]
    """Lets the tasks look at the event at once."""
    spans: Spans | None


def lifespan_of(parts: Parts) -> Lifespan:
    """Return the lifespan of a service with these parts."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        """Open the parts that requests need; at the end flush everything that was accepted."""
        async with AsyncExitStack() as stack:
            await parts.pool.open(wait=False)
            stack.push_async_callback(parts.pool.close)
            if parts.spans is not None:
                stack.push_async_callback(asyncio.to_thread, parts.spans.close)
            if bind := parts.metrics_bind:
                page, shared = parts.metrics_page.collector(), parts.shares_metrics_bind
                stack.enter_context(
                    metrics_server("OUTBOX_METRICS_BIND", bind, page, shared=shared)
                )
            await stack.enter_async_context(_tasks(parts))
            get_logger().info(Event.STARTED, program="api")
            yield

    return lifespan


@asynccontextmanager
async def _tasks(parts: Parts) -> AsyncIterator[None]:
    """Run the tasks for the block; then end them, and flush."""
    stop = asyncio.Event()
    running = [asyncio.create_task(_until_stopped(*each, stop)) for each in parts.tasks.items()]
    try:
        yield
    finally:
        stop.set()
        parts.wake()
        _, late = await asyncio.wait(running, timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
        await parts.flushes.drain()
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
