"""Opens and closes the parts of a service: its pool, its metrics, and its tasks beside requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from api.app import Lifespan
from api.background_task import until_stopped
from api.ingest.batcher import MicroBatcher
from api.metrics.metrics_page import MetricsPage
from outbox.messages.message import End, EndOutcome, Message, PrepareOutcome
from outbox.postgres.sessions.connections import Pool
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics_server import metrics_server

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans

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
class MetricsAddress:
    """Where metrics are served apart from the API; ``bind`` None: only by the API itself."""

    bind: str | None
    shared: bool
    """Several workers listen there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that the lifespan opens and closes."""

    pool: Pool
    flushes: Flushes
    metrics_page: MetricsPage
    metrics_address: MetricsAddress
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
            address = parts.metrics_address
            if address.bind:
                page = parts.metrics_page.collector()
                stack.enter_context(
                    metrics_server("OUTBOX_METRICS_BIND", address.bind, page, shared=address.shared)
                )
            await stack.enter_async_context(_tasks(parts))
            get_logger().info(Event.STARTED, program="api")
            yield

    return lifespan


@asynccontextmanager
async def _tasks(parts: Parts) -> AsyncIterator[None]:
    """Run the tasks for the block; then end them, and flush."""
    stop = asyncio.Event()
    running = [asyncio.create_task(until_stopped(*each, stop)) for each in parts.tasks.items()]
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
