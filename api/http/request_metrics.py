"""Counts and times requests by route, method and status."""

from __future__ import annotations

from typing import Any, Final

from api.http.exchange import Exchange
from api.http.problems import Problem
from outbox.clock import Clock
from outbox.telemetry.metrics import Metrics

REJECTIONS: Final = frozenset({"overloaded", "rate-limited", "unauthenticated"})


class RequestMetrics:
    """The metrics of requests in one process."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._series: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def begin(self) -> float:
        """Return when a request begins."""
        return self._clock.monotonic()

    def end(self, exchange: Exchange, began: float) -> None:
        """Count and time a request that was served."""
        counted, timed = self._of((exchange.template(), exchange.method, exchange.status))
        counted.inc()
        timed.observe(self._clock.monotonic() - began)

    def refused(self, problem: Problem) -> None:
        """Count a request that was refused at the door."""
        if problem.slug in REJECTIONS:
            self._metrics["http_rejected_total"].labels(problem.slug).inc()

    def _of(self, labels: tuple[str, str, int]) -> tuple[Any, Any]:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = (
                self._metrics["http_requests_total"].labels(*labels),
                self._metrics["http_request_duration_seconds"].labels(*labels),
            )
        return series
