"""The metrics page: a request reads the gauges from the tables, at most every 5 s."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

from api.http.shared_read import SharedRead
from api.metrics.shared_metrics import page_registry
from api.metrics.table_gauges import clear_table_gauges, set_table_gauges
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.reconciliation.gauges import set_last_run, set_open_findings
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from outbox.postgres.maintenance.gauges import PostgresGauges
    from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns

FRESH_SECONDS: Final = 5.0
READ_SECONDS: Final = 30.0
"""How long a thread waits for the gauges."""


class MetricsPage:
    """Renders the registry; gauges that cannot be read from the tables are missing.

    Any worker answers for all workers.
    """

    def __init__(
        self,
        metrics: Metrics,
        source: PostgresGauges,
        pool_use: Callable[[], tuple[int, int]],
        runs: PostgresReconciliationRuns,
        clock: Clock,
    ) -> None:
        self._metrics = metrics
        self._registry = page_registry(metrics.registry)
        self._source = source
        self._pool_use = pool_use
        self._runs = runs
        self._gauges = SharedRead(self._read_gauges, clock, FRESH_SECONDS)
        self.rendered = SharedRead(self._render, clock)
        """The metrics in Prometheus' text format."""
        self._unread = frozenset[str]()

    async def _render(self) -> bytes:
        await self._refresh()
        return await asyncio.to_thread(generate_latest, self._registry)

    def collector(self) -> Collector:
        """Return the page for a server in another thread; call it within the event loop."""
        return _FromThread(self._registry, self._refresh, asyncio.get_running_loop())

    async def keep_pool_fresh(self) -> float:
        """Set this worker's pool gauges; return the seconds until the next time."""
        self._set_pool_gauges()
        return FRESH_SECONDS

    async def _refresh(self) -> None:
        self._set_pool_gauges()
        await self._gauges.get()

    def _set_pool_gauges(self) -> None:
        in_use, maximum = self._pool_use()
        self._metrics["db_pool_in_use"].set(in_use)
        self._metrics["db_pool_max"].set(maximum)

    async def _read_gauges(self) -> None:
        clear_table_gauges(self._metrics)
        with suppress(DatabaseUnavailable):
            found, errors = await self._source.read()
            set_table_gauges(found, errors, self._metrics)
            self._log_unread(errors)
            set_open_findings(await self._runs.open_findings(), self._metrics)
            last = await self._runs.last()
            if last is not None:
                set_last_run(last, self._metrics)

    def _log_unread(self, found: Mapping[str, str | None]) -> None:
        """Log each part that cannot be read any more, once."""
        unread = {part: error for part, error in found.items() if error is not None}
        for part in unread.keys() - self._unread:
            get_logger().warning(Event.TABLE_GAUGES_UNREAD, part=part, error=unread[part])
        self._unread = frozenset(unread)


class _FromThread(Collector):
    """The metrics, whose gauges are read by the event loop of the service."""

    def __init__(
        self,
        metrics: Collector,
        refresh: Callable[[], Coroutine[None, None, None]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._metrics = metrics
        self._refresh = refresh
        self._loop = loop

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; for the server."""
        asyncio.run_coroutine_threadsafe(self._refresh(), self._loop).result(READ_SECONDS)
        return self._metrics.collect()
