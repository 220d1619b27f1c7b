"""Counts and times requests by route, method and status."""

from __future__ import annotations

from functools import cache
from time import monotonic
from typing import Final

from api.http.exchange import Exchange
from api.http.problems import Problem
from outbox.telemetry.metrics import Metrics

SERIES: Final = ("http_requests_total", "http_request_duration_seconds")
REJECTIONS: Final = frozenset({"overloaded", "rate-limited", "unauthenticated"})


class RequestMetrics:
    """The metrics of requests in one process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._series = cache(lambda *labels: [metrics[name].labels(*labels) for name in SERIES])
        """The counter and the histogram by labels: to find them takes longer than to count."""

    def served(self, exchange: Exchange) -> None:
        """Count and time a request that was served."""
        count, seconds = self._series(exchange.template(), exchange.method, exchange.status)
        count.inc()
        seconds.observe(monotonic() - exchange.began)

    def refused(self, problem: Problem) -> None:
        """Count a request that was refused at the door."""
        if problem.slug in REJECTIONS:
            self._metrics["http_rejected_total"].labels(problem.slug).inc()
