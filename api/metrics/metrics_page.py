"""The metrics page: a request reads the gauges from the tables, at most every 5 s."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from prometheus_client import generate_latest

from api.metrics.reconciliation_gauges import set_gauges
from api.metrics.shared_metrics import page_registry
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.reconciliation.ports import ReconciliationRuns
from outbox.telemetry.metrics import Metrics

FRESH_SECONDS: Final = 5.0
PARKED: Final = "PARKED"
PLAIN: Final = "PLAIN"
"""Published in SQL mode and not yet admitted: not a state of a half message."""


class UnfinishedCount(Protocol):
    """The number of messages of a group in a state, and the age of the oldest in seconds."""

    @property
    def state(self) -> str: ...
    @property
    def producer_group(self) -> str: ...
    @property
    def messages(self) -> int: ...
    @property
    def oldest_age_seconds(self) -> float: ...


class MetricsPage:
    """Renders the registry; while PostgreSQL is down the gauges from tables are missing.

    Any worker answers for all workers.
    """

    def __init__(
        self,
        metrics: Metrics,
        unfinished: Callable[[], Awaitable[Iterable[UnfinishedCount]]],
        pool_use: Callable[[], tuple[int, int]],
        runs: ReconciliationRuns,
        clock: Clock,
    ) -> None:
        self._metrics = metrics
        self._registry = page_registry(metrics.registry)
        self._unfinished = unfinished
        self._pool_use = pool_use
        self._runs = runs
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")

    async def render(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        self._set_pool_gauges()
        async with self._lock:
            if self._clock.monotonic() - self._read_at >= FRESH_SECONDS:
                await self._read_gauges()
                self._read_at = self._clock.monotonic()
            return await asyncio.to_thread(generate_latest, self._registry)

    async def keep_pool_fresh(self, stop: asyncio.Event) -> None:
        """Set this worker's pool gauges every few seconds until ``stop`` is set."""
        while not stop.is_set():
            self._set_pool_gauges()
            with suppress(TimeoutError):
                async with asyncio.timeout(FRESH_SECONDS):
                    await stop.wait()

    def _set_pool_gauges(self) -> None:
        in_use, maximum = self._pool_use()
        self._metrics["db_pool_in_use"].set(in_use)
        self._metrics["db_pool_max"].set(maximum)

    async def _read_gauges(self) -> None:
        metrics = self._metrics
        by_state, ages = metrics["half_messages"], metrics["half_oldest_age_seconds"]
        parked = metrics["parked_messages"]
        plain, plain_ages = metrics["plain_backlog_messages"], metrics["plain_oldest_age_seconds"]
        for gauge in (by_state, ages, parked, plain, plain_ages):
            gauge.clear()
        try:
            counts = await self._unfinished()
            await set_gauges(self._runs, metrics)
        except DatabaseUnavailable:
            return
        for count in counts:
            if count.state == PLAIN:
                plain.labels(count.producer_group).set(count.messages)
                plain_ages.labels(count.producer_group).set(count.oldest_age_seconds)
                continue
            by_state.labels(count.state, count.producer_group).set(count.messages)
            ages.labels(count.state, count.producer_group).set(count.oldest_age_seconds)
            if count.state == PARKED:
                parked.labels(count.producer_group).set(count.messages)
