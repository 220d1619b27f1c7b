"""Serves ``/metrics`` and ``/livez`` of the checker on a separate address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from outbox.errors import ConfigurationError
from outbox.telemetry.metrics import Metrics
from outbox.telemetry.page_listener import BindError, Page, page_listener


@asynccontextmanager
async def metrics_server(bind: str, metrics: Metrics) -> AsyncIterator[None]:
    """Serve for the block. Raises ConfigurationError when the address cannot be bound."""

    async def numbers() -> bytes:
        return generate_latest(metrics.registry)

    async def live() -> bytes:
        return b'{"status": "ok"}'

    pages = {
        "/metrics": Page(CONTENT_TYPE_LATEST, numbers),
        "/livez": Page("application/json; charset=utf-8", live),
    }
    try:
        async with page_listener(bind, pages):
            yield
    except BindError as error:
        raise ConfigurationError(f"OUTBOX_CHECKER_METRICS_BIND: {error}") from None
