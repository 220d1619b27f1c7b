"""Serves ``/metrics`` and ``/livez`` of the checker on a separate address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from outbox.errors import ConfigurationError
from outbox.telemetry.metrics import Metrics


@asynccontextmanager
async def metrics_server(bind: str, metrics: Metrics) -> AsyncIterator[None]:
    """Serve for the block. Raises ConfigurationError when the address cannot be bound."""
    host, _, port = bind.rpartition(":")
    runner = web.AppRunner(_app(metrics), access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"OUTBOX_CHECKER_METRICS_BIND: {bind}: {error}") from None
        yield
    finally:
        await runner.cleanup()


def _app(metrics: Metrics) -> web.Application:
    async def read_metrics(_: web.Request) -> web.Response:
        content = generate_latest(metrics.registry)
        return web.Response(body=content, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application()
    app.router.add_get("/metrics", read_metrics)
    app.router.add_get("/livez", live)
    return app
