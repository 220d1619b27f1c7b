"""Counts and times requests by route, method and status."""

from __future__ import annotations

from time import monotonic
from typing import Final

from api.http.exchange import Exchange
from api.http.problems import Problem
from outbox.telemetry.metrics import Metrics

REJECTIONS: Final = frozenset({"overloaded", "rate-limited", "unauthenticated"})


class RequestMetrics:
    """The metrics of requests in one process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def served(self, exchange: Exchange) -> None:
        """Count and time a request that was served."""
        labels = (exchange.template(), exchange.method, exchange.status)
        seconds = monotonic() - exchange.began
        self._metrics["http_requests_total"].labels(*labels).inc()
        self._metrics["http_request_duration_seconds"].labels(*labels).observe(seconds)

    def refused(self, problem: Problem) -> None:
        """Count a request that was refused at the door."""
        if problem.slug in REJECTIONS:
            self._metrics["http_rejected_total"].labels(problem.slug).inc()
