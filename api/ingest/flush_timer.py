"""Measures the database time of a flush, by operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from outbox.clock import Clock
from outbox.telemetry.metrics import Metrics

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")
Flush = Callable[[Sequence[ItemT]], Awaitable[Sequence[OutcomeT]]]


def timed(
    flush: Flush[ItemT, OutcomeT], operation: str, metrics: Metrics, clock: Clock
) -> Flush[ItemT, OutcomeT]:
    """Return the flush with its duration observed under the operation's name."""
    seconds = metrics["db_tx_duration_seconds"].labels(operation)

    async def measured(items: Sequence[ItemT]) -> Sequence[OutcomeT]:
        started = clock.monotonic()
        outcomes = await flush(items)
        seconds.observe(clock.monotonic() - started)
        return outcomes

    return measured
