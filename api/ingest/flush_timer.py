"""One flush with its clock: how long the database took, by operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from outbox.clock import Clock
from outbox.telemetry.metrics import Metrics

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Flush = Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]]


def timed(
    flush: Flush[Item, Outcome], operation: str, metrics: Metrics, clock: Clock
) -> Flush[Item, Outcome]:
    """Return the flush, measured under its operation's name."""
    seconds = metrics["db_tx_duration_seconds"].labels(operation)

    async def measured(items: Sequence[Item]) -> Sequence[Outcome]:
        started = clock.monotonic()
        outcomes = await flush(items)
        seconds.observe(clock.monotonic() - started)
        return outcomes

    return measured
